package pleg_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// A hinting node is a node and a runtime.Watcher. Each Watch ends after lasts,
// or with its context if that is 0; all of them fail if fails is set.
type hinting struct {
	*node
	hints   chan types.UID
	lasts   time.Duration
	breaks  chan struct{} // ends Watch
	fails   error         // instead, at once
	watches []time.Time
}

func (h *hinting) Watch(ctx context.Context, changed func(types.UID)) error {
	h.do(func() { h.watches = append(h.watches, time.Now()) })
	if h.fails != nil {
		return h.fails
	}
	var end <-chan time.Time
	if h.lasts > 0 {
		end = time.After(h.lasts)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return errRefused
		case <-h.breaks:
			return errRefused
		case uid := <-h.hints:
			changed(uid)
		}
	}
}

// break1 ends the current Watch.
func (h *hinting) break1() { h.breaks <- struct{}{} }

func (h *hinting) watched() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.watches)
}

func TestAHintCausesAnInspectionAtOnce(t *testing.T) { // pleg-36, pleg-37
	synctest.Test(t, func(t *testing.T) {
		h, l := &hinting{node: newNode(), hints: make(chan types.UID)}, new(listener)
		g := newGenerator(t, h, l, pleg.Config{})
		defer run(t, g)()
		time.Sleep(500 * time.Millisecond)
		h.start("u", "c")
		h.hints <- "u"
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
		h.hints <- "u"
		h.hints <- ""
		h.hints <- "unknown"
		synctest.Wait()
		assert.Empty(t, l.take())
		assert.Zero(t, h.inspected(""))
		time.Sleep(time.Minute)
		assert.Len(t, h.watched(), 1)
		assert.Equal(t, 1, pleg.Records(g), "no record is kept for an unknown pod")
	})
}

func TestABrokenWatchIsReopenedForever(t *testing.T) { // lq-4
	synctest.Test(t, func(t *testing.T) {
		h, l := &hinting{node: newNode(), hints: make(chan types.UID), lasts: time.Millisecond}, new(listener)
		defer run(t, newGenerator(t, h, l, pleg.Config{}))()
		began := time.Now()
		for i := range 100 {
			h.start("u", fmt.Sprint("c", i))
			time.Sleep(20 * time.Second)
			synctest.Wait()
			assert.Len(t, l.take(), 1, "lists go on at their period")
		}
		var at []time.Duration
		for _, w := range h.watched()[:8] {
			at = append(at, w.Sub(began).Round(time.Second))
		}
		assert.Equal(t, []time.Duration{0, 1e9, 3e9, 7e9, 15e9, 31e9, 61e9, 91e9}, at, "pauses double up to 30 s")
		assert.GreaterOrEqual(t, len(h.watched()), 60)
	})
}

func TestAStableWatchIsReopenedSoon(t *testing.T) { // lq-4
	synctest.Test(t, func(t *testing.T) {
		h := &hinting{node: newNode(), hints: make(chan types.UID), lasts: time.Minute}
		defer run(t, newGenerator(t, h, nil, pleg.Config{}))()
		time.Sleep(10 * time.Minute)
		assert.Len(t, h.watched(), 10)
	})
}

func TestARuntimeWithoutHints(t *testing.T) { // lq-4: containerd 1.6 has no events
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		h, l := &hinting{node: newNode(), fails: fmt.Errorf("cri: container events: %w", runtime.ErrUnsupported)}, new(listener)
		stop := run(t, newGenerator(t, h, l, pleg.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))}))
		h.start("u", "c")
		time.Sleep(10*time.Minute - time.Second)
		stop()
		assert.Len(t, l.take(), 1, "lists go on at their period")
		assert.Len(t, h.watched(), 20, "a newer runtime may come")
		assert.Equal(t, 1, strings.Count(logged.String(), "level=INFO"), logged.String())
		assert.NotContains(t, logged.String(), "level=WARN")
	})
}
