// Package script runs the Lua scripts of ResourceInterpreterCustomizations. Scripts are written by users of a fleet,
// and may be wrong or hostile; whatever one does, it takes a bounded share of the process, reaches nothing but its
// arguments, and its failure is an error of the one question that was asked.
//
// Each call has a state of its own, so calls can neither see nor disturb each other. What is bounded, and how:
//
//   - Steps. The virtual machine asks its context before every instruction whether to go on; the context counts, and
//     ends a run after MaxSteps (steps of pattern matching are counted too) or MaxTime. Once it has ended a run it
//     stays so: pcall catches the error, and the next instruction raises it again.
//   - Memory. The virtual machine has no allocator that could refuse, so what allocates more than a constant per
//     instruction is replaced before a script is compiled (rewrite.go): concatenation, table constructors and
//     assignments to an index become calls to functions that count bytes, and end a run after MaxBytes. The library
//     functions that make strings do the same. What is left grows with the number of steps: about a hundred bytes for
//     each.
//   - Depth. The call stack has MaxCalls frames, the value stack maxValues; MaxProtected calls of pcall are within each
//     other. An error that is caught counts as the bytes of its traceback.
//   - Size. Scripts have at most MaxScript bytes, and a result MaxResultValues values, MaxResultBytes bytes and
//     MaxResultDepth levels, so that tables that contain themselves are errors.
//   - Processes. As many scripts run at once as there are processors; others wait.
//
// Scripts have the basic functions, string, table and math of Lua 5.1, os.time and os.date, and require("kube"); no
// files, no other modules, no loading of code, no metatables, no coroutines, no random numbers.
package script
