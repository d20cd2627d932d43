// Package webhook asks webhooks of a fleet's users about kinds that the fleet does not know. A webhook may be slow,
// wrong or hostile: each question has a time limit, an answer a size, a patch a number of operations; a webhook gets a
// few questions at a time, and none for a while after it failed several times in a row. Its failure is an error of the
// one question, and asking again later may help.
package webhook
