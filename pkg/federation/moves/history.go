package moves

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const (
	// Age is how long moves are kept, and Most how many, whichever is less.
	Age  = 7 * 24 * time.Hour
	Most = pages * movesInPage

	// pages are the ConfigMaps, the oldest of which is written over when all are full: so little is written for a move.
	pages       = 10
	movesInPage = 100
	// repeated is for how long the same is not told again.
	repeated = time.Hour

	// Namespace of the ConfigMaps, Label of each, and what their names begin with.
	Namespace  = clusterv1alpha1.CredentialsNamespace
	Label      = "federation.trellis.garden/moves"
	namePrefix = "fleet-moves-"

	keyNumber, keyMoves = "number", "moves"
)

// page has the moves of a ConfigMap, the oldest first.
type page struct {
	// number counts all pages that there ever were.
	number int64
	moves  []Move
}

func (p *page) name() string { return namePrefix + strconv.FormatInt(p.number%pages, 10) }

func (p *page) configMap() (*corev1.ConfigMap, error) {
	text, err := json.Marshal(p.moves)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: p.name(), Labels: map[string]string{Label: "true"}},
		Data:       map[string]string{keyNumber: strconv.FormatInt(p.number, 10), keyMoves: string(text)},
	}, nil
}

// pageOf reads a ConfigMap. What an administrator has changed so that it cannot be read is none.
func pageOf(c *corev1.ConfigMap) (*page, bool) {
	p := &page{}
	var err error
	if p.number, err = strconv.ParseInt(c.Data[keyNumber], 10, 64); err != nil || p.number < 0 || c.Name != p.name() {
		return nil, false
	}
	if json.Unmarshal([]byte(c.Data[keyMoves]), &p.moves) != nil || len(p.moves) > movesInPage {
		return nil, false
	}
	return p, true
}

// history is what is kept, the oldest page first. It is its user's alone.
type history struct {
	pages []*page
	// dirty are numbers of pages that are not written yet.
	dirty map[int64]bool
}

// add keeps a move, unless it is known. It is false then.
func (h *history) add(m Move, now time.Time) bool {
	m = m.short()
	if now.Sub(m.Time.Time) > Age || h.knows(m) {
		return false
	}
	last := h.last()
	if last == nil || len(last.moves) >= movesInPage {
		next := &page{}
		if last != nil {
			next.number = last.number + 1
		}
		h.pages = append(h.pages, next)
		h.pages = h.pages[max(0, len(h.pages)-pages):]
		last = next
	}
	last.moves = append(last.moves, m)
	h.dirty[last.number] = true
	return true
}

func (h *history) last() *page {
	if len(h.pages) == 0 {
		return nil
	}
	return h.pages[len(h.pages)-1]
}

// knows tells whether the same was kept, or the same words of the same object not long before.
func (h *history) knows(m Move) bool {
	for _, p := range slices.Backward(h.pages) {
		for _, known := range slices.Backward(p.moves) {
			if known.Object != m.Object || known.Type != m.Type || known.Reason != m.Reason {
				continue
			}
			sameWords := known.Message == m.Message && slices.Equal(known.Clusters, m.Clusters)
			if known.Key() == m.Key() || sameWords && m.Time.Sub(known.Time.Time).Abs() < repeated {
				return true
			}
		}
	}
	return false
}

// expire takes out the pages of which all moves are too old.
func (h *history) expire(now time.Time) []*page {
	isOld := func(p *page) bool {
		return !slices.ContainsFunc(p.moves, func(m Move) bool { return now.Sub(m.Time.Time) <= Age })
	}
	var old []*page
	for len(h.pages) > 1 && isOld(h.pages[0]) { // The last one goes on counting.
		old = append(old, h.pages[0])
		h.pages = h.pages[1:]
	}
	return old
}

// readHistory reads what was kept.
func readHistory(ctx context.Context, reader client.Reader) (*history, error) {
	h := &history{dirty: map[int64]bool{}}
	list := &corev1.ConfigMapList{}
	err := reader.List(ctx, list, client.InNamespace(Namespace), client.MatchingLabels{Label: "true"})
	if err != nil {
		return nil, fmt.Errorf("listing moves that were kept: %w", err)
	}
	for i := range list.Items {
		if p, good := pageOf(&list.Items[i]); good {
			h.pages = append(h.pages, p)
		}
	}
	slices.SortFunc(h.pages, func(a, b *page) int { return int(a.number - b.number) })
	h.pages = h.pages[max(0, len(h.pages)-pages):]
	return h, nil
}

// Read gives what is kept of the last days, the oldest first.
func Read(ctx context.Context, reader client.Reader, now time.Time) ([]Move, error) {
	h, err := readHistory(ctx, reader)
	if err != nil {
		return nil, err
	}
	var result []Move
	for _, p := range h.pages {
		for _, m := range p.moves {
			if now.Sub(m.Time.Time) <= Age {
				result = append(result, m)
			}
		}
	}
	return result, nil
}
