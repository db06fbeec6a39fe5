package pleg_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
)

// eventDelay is how late an event may be.
const eventDelay = 5 * time.Second

// A watched node is a hinting node with a running Generator, and access to its state.
type watched struct {
	*hinting
	*pleg.Generator
	l    *listener
	turn int

	mu       sync.Mutex
	relists  []pleg.RelistInfo
	delivers []pleg.DeliverInfo
}

func newWatched(t *testing.T, cfg pleg.Config) *watched {
	w := &watched{hinting: &hinting{node: newNode(), hints: make(chan types.UID), breaks: make(chan struct{})}, l: new(listener)}
	cfg.Hooks.Relisted = func(i pleg.RelistInfo) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.relists = append(w.relists, i)
	}
	cfg.Hooks.Delivered = func(i pleg.DeliverInfo) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.delivers = append(w.delivers, i)
	}
	w.Generator = newGenerator(t, w.hinting, w.l, cfg)
	return w
}

// hinted changes the node and emits an event, as a correct runtime does.
func (w *watched) hinted(uid types.UID, change func()) {
	change()
	w.hints <- uid
	synctest.Wait()
}

// settle gets to an instant at which events are trusted, lists are 5 minutes apart, the last was
// 10 s ago, and nothing is due.
func (w *watched) settle() {
	time.Sleep(time.Minute) // changes without an event are missed
	for end := time.Now().Add(12 * time.Hour); w.Health().Period < 5*time.Minute; {
		time.Sleep(betweenLists + 3*time.Second - time.Since(w.lastList())%time.Second)
		w.turn++
		w.hinted("first", func() { w.start("first", fmt.Sprint("c", w.turn)) })
		w.hinted("first", func() { w.remove("first", fmt.Sprint("c", w.turn)) })
		if time.Now().After(end) {
			panic("hints are never trusted: " + w.Health().String())
		}
	}
	time.Sleep(time.Minute) // the list after the last change
	time.Sleep(5*time.Minute + 10*time.Second - time.Since(w.lastList()))
	synctest.Wait()
	w.l.take()
}

func (w *watched) lastList() time.Time {
	lists := w.listed()
	return lists[len(lists)-1]
}

// listsIn returns the number of lists in d.
func (w *watched) listsIn(d time.Duration) int {
	before := len(w.listed())
	time.Sleep(d)
	synctest.Wait()
	return len(w.listed()) - before
}

// Nothing has to be announced first: a node without changes has no events.
func TestAnOpenStreamIsTrustedFromTheStart(t *testing.T) { // pleg-33
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		for i := range 100 {
			w.start(types.UID(fmt.Sprint("old", i)), "c")
		}
		began := time.Now()
		defer run(t, w.Generator)()
		time.Sleep(time.Second + betweenLists)
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence, "it has missed nothing so far")
		inspections := w.inspected("old7")
		time.Sleep(30 * time.Minute)
		var at []time.Duration
		for _, l := range w.listed() {
			at = append(at, l.Sub(began)/time.Second)
		}
		assert.Equal(t, []time.Duration{0, 1, 301, 601, 901, 1201, 1501, 1801}, at, "a quiet node costs little")
		assert.Equal(t, inspections, w.inspected("old7"), "and nothing is inspected")
		assert.NoError(t, w.Healthy())

		w.hinted("u", func() { w.exit("u", "c") })
		w.hinted("u", func() { w.remove("u", "c") })
		assert.Contains(t, w.l.take(), "u ContainerRemoved c")
		assert.Equal(t, 5*time.Minute, w.Health().Period)
	})
}

func TestABulkOfChangesIsFollowedByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		for i := range 20 {
			uid := types.UID(fmt.Sprint("u", i))
			w.hinted(uid, func() { w.start(uid, "c") })
			time.Sleep(time.Second)
		}
		w.start("lost", "c")
		assert.Equal(t, 1, w.listsIn(11*time.Second), "30 s after the first change")
		assert.Contains(t, w.l.take(), "lost ContainerStarted c")
		w.hints <- "lost" // late
		assert.Zero(t, w.listsIn(20*time.Second))
		assert.Equal(t, 1, w.listsIn(20*time.Second), "30 s after the last one")
		assert.Zero(t, w.listsIn(4*time.Minute))
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
	})
}

// A change from before the stream was open has no event, though later ones do.
func TestAReopenedStreamIsNotTrustedBeforeAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.break1()
		time.Sleep(time.Second) // until it is open again
		synctest.Wait()
		w.start("u", "c")
		w.hinted("other", func() { w.start("other", "c") })
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
		assert.Equal(t, time.Second, w.Health().Period)
		time.Sleep(1100 * time.Millisecond)
		assert.Contains(t, w.l.take(), "u ContainerStarted c")
		time.Sleep(time.Second)
		assert.Equal(t, 5*time.Minute, w.Health().Period)
	})
}

// A quiet node that missed a change does not list every second forever, though it has no changes
// that events could announce.
func TestAQuietNodeTrustsItsEventsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		for _, quiet := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
			w.start("u", fmt.Sprint("lost in ", quiet))
			w.RequestRelist("u")
			time.Sleep(eventDelay)
			synctest.Wait()
			assert.NotEqual(t, pleg.ConfidenceTrusted, w.Health().Confidence)
			assert.InDelta(t, quiet.Seconds(), w.listsIn(quiet-2*time.Second), 35, "one per second, but for the pause of the stream")
			time.Sleep(4 * time.Second)
			assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
			assert.Zero(t, w.listsIn(time.Minute))
		}
	})
}

func TestAFixedPeriodStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{Period: 2 * time.Second, MaxPeriod: 2 * time.Second})
		defer run(t, w.Generator)()
		time.Sleep(5 * time.Second)
		w.hinted("u", func() { w.start("u", "c") })
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
		assert.Equal(t, 30, w.listsIn(time.Minute))
	})
}

func TestEventsThatAreLostSilentlyAreDetected(t *testing.T) { // lq-5, pleg-41: only statuses that were read count as fresh
	for name, find := range map[string]func(*testing.T, *watched){
		"by a list": func(t *testing.T, w *watched) {
			for n := len(w.listed()); len(w.listed()) == n; {
				time.Sleep(time.Second)
			}
		},
		"by a request": func(t *testing.T, w *watched) {
			w.RequestRelist("u")
		},
		"by a waiter": func(t *testing.T, w *watched) {
			_, err := w.GetNewerThan(t.Context(), "u", time.Now())
			assert.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, pleg.Config{})
				defer run(t, w.Generator)()
				w.settle()
				w.start("u", "c")
				w.start("v", "c")
				find(t, w)
				synctest.Wait()
				assert.Contains(t, w.l.take(), "u ContainerStarted c")
				assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence, "the hint may be on its way")

				time.Sleep(eventDelay)
				synctest.Wait()
				h := w.Health()
				assert.Equal(t, pleg.ConfidenceBroken, h.Confidence, "a stream that says nothing is opened again")
				assert.Equal(t, time.Second, h.Period)
				w.l.take()
				w.exit("u", "c")
				w.exit("v", "c")
				time.Sleep(1100 * time.Millisecond)
				synctest.Wait()
				assert.ElementsMatch(t, []string{"u ContainerDied c", "v ContainerDied c"}, w.l.take(), "lists find changes without events")

				unhinted := 0
				for _, i := range w.relists {
					unhinted += i.Unannounced
				}
				assert.Positive(t, unhinted)
				assert.NoError(t, w.Healthy(), "which is no matter of health")
			})
		})
	}
}

func TestAHintMayBeLateByAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.start("u", "c")
		w.RequestRelist("u")
		time.Sleep(900 * time.Millisecond)
		w.hints <- "u"
		time.Sleep(10 * time.Second)
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
		assert.Equal(t, []string{"u ContainerStarted c"}, w.l.take())
	})
}

func TestARuntimeThatHintsAtHalfTheChangesLosesConfidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		var late, worst time.Duration
		for i := range 150 {
			uid := types.UID(fmt.Sprint("u", i))
			time.Sleep(17 * time.Second)
			w.hinted(uid, func() { w.start(uid, "c") })
			time.Sleep(17 * time.Second)
			w.exit(uid, "c") // emits no event
			began := time.Now()
			w.l.take()
			for len(w.l.take()) == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			late += time.Since(began)
			worst = max(worst, time.Since(began))
		}
		t.Logf("150 changes without a hint were found after %v on average, after %v at worst", late/150, worst)
		assert.Less(t, late/150, 2*time.Second)
		assert.Less(t, worst, 30*time.Second)
	})
}

func TestConfidenceIsRegained(t *testing.T) { // lq-4
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		for round := range 20 { // one hint lost each time
			w.settle()
			w.start("u", fmt.Sprint("lost", round))
			w.RequestRelist("u")
			time.Sleep(eventDelay + time.Second)
			require.NotEqual(t, pleg.ConfidenceTrusted, w.Health().Confidence)
		}
	})
}

func TestAStreamThatBreaksFallsBackAtOnce(t *testing.T) { // pleg-34
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.start("u", "c")
		w.break1()
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c"}, w.l.take(), "there is a list at once")
		h := w.Health()
		assert.Equal(t, pleg.ConfidenceBroken, h.Confidence)
		assert.ErrorIs(t, h.WatchErr, errRefused)
		assert.Contains(t, h.String(), "event stream broken (refused)")
		assert.Equal(t, 2, w.listsIn(10*time.Second), "after 1 s, and when it has been open for 1 s")
	})
}

// The events of many pods that start at once may arrive after a list that contains the
// pods.
func TestHintsWithABacklogAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		const pods = 40
		for i := range pods {
			w.start(types.UID(fmt.Sprint("u", i)), "c")
		}
		w.RequestRelist("u39") // one that is inspected before its hint arrives
		for i := range pods {
			time.Sleep(100 * time.Millisecond)
			w.hints <- types.UID(fmt.Sprint("u", i))
		}
		time.Sleep(10 * time.Second)
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)

		w.start("v", "c")
		w.RequestRelist("v")
		for range 28 { // hints of other pods excuse it for 30 s
			time.Sleep(time.Second - time.Millisecond)
			w.hints <- "u0"
		}
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
		for range 5 {
			time.Sleep(time.Second - time.Millisecond)
			w.hints <- "u0"
		}
		assert.Equal(t, pleg.ConfidenceUnproven, w.Health().Confidence)
		assert.Equal(t, 60, w.listsIn(time.Minute), "who has missed a change has to prove itself")
	})
}

func TestAHundredBrokenStreamsLoseNoExit(t *testing.T) { // pleg-35
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		for i := range 100 {
			w.settle()
			id := fmt.Sprint("c", i)
			w.hinted("u", func() { w.start("u", id) })
			w.break1()
			time.Sleep(time.Duration(i) * 17 * time.Millisecond)
			w.exit("u", id) // without an event
			time.Sleep(1100 * time.Millisecond)
			require.Equal(t, []string{"u ContainerStarted " + id, "u ContainerDied " + id}, w.l.take())
			w.hinted("u", func() { w.remove("u", id) })
		}
		w.settle()
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
	})
}

func TestASilentStreamIsReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		assert.Len(t, w.watched(), 1)
		w.start("u", "c")
		w.RequestRelist("u")
		time.Sleep(eventDelay + time.Second/2) // found out
		assert.ErrorContains(t, w.Health().WatchErr, "no events")
		time.Sleep(time.Second) // and opened again after a pause
		assert.Len(t, w.watched(), 2)
		w.settle()
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)

		// A stream that still emits events has only lost one.
		w.hinted("v", func() { w.start("v", "c") })
		w.exit("u", "c")
		w.RequestRelist("u")
		time.Sleep(10 * time.Second)
		assert.Equal(t, pleg.ConfidenceUnproven, w.Health().Confidence)
		assert.Len(t, w.watched(), 2)
	})
}

func TestAHintThatComesTooEarlyIsFollowedByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.hinted("u", func() {})
		w.start("u", "c") // seen only now
		assert.Equal(t, 1, w.listsIn(1100*time.Millisecond))
		assert.Equal(t, []string{"u ContainerStarted c"}, w.l.take())

		// It has announced the change. (For a pod that did not exist, no event is remembered.)
		w.settle()
		w.hinted("u", func() {})
		w.remove("u", "c")
		assert.Equal(t, 1, w.listsIn(1100*time.Millisecond))
		assert.Equal(t, []string{"u ContainerDied c", "u ContainerRemoved c"}, w.l.take())
		time.Sleep(time.Minute)
		assert.Equal(t, pleg.ConfidenceTrusted, w.Health().Confidence)
	})
}

func TestAFailedInspectionIsRetriedBeforeTheNextList(t *testing.T) { // pleg-19
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		defer run(t, w.Generator)()
		w.settle()
		w.do(func() { w.inspectErr["u"] = errRefused })
		w.hinted("u", func() { w.start("u", "c") })
		assert.Zero(t, w.listsIn(10*time.Second))
		assert.Equal(t, 11, w.inspected("u"), "once a period")
		assert.Equal(t, 1, w.Health().Stale)
		w.do(func() { clear(w.inspectErr) })
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerStarted c"}, w.l.take())
		assert.Equal(t, 1, w.listsIn(time.Minute), "after the change")
		assert.Equal(t, 12, w.inspected("u"))
	})
}

func TestTheLatencyFromHintToHandleIsMeasured(t *testing.T) { // pleg-38: removed containers included
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, pleg.Config{})
		w.start("v", "c")
		defer run(t, w.Generator)()
		time.Sleep(betweenLists)
		w.do(func() { w.inspectTake["u"] = 30 * time.Millisecond })
		w.start("u", "c")
		w.hints <- "u"
		time.Sleep(10 * time.Millisecond)
		w.hints <- "u" // the first counts
		time.Sleep(100 * time.Millisecond)
		w.exit("u", "c")
		w.RequestRelist("u") // no hint
		time.Sleep(2 * time.Second)
		w.hinted("v", func() { w.remove("v", "c") })
		assert.Equal(t, []pleg.DeliverInfo{
			{UID: "v", Events: 1},
			{UID: "u", Events: 1, Announced: true, Latency: 30 * time.Millisecond},
			{UID: "u", Events: 1},
			{UID: "v", Events: 2, Announced: true},
		}, w.delivers)
	})
}
