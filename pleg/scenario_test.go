package pleg_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// Whatever happens on the node, however slow and broken it is, however slow the
// handlers and however reliable the events: the last event delivered matches the node
// within a period, a list and an inspection (inv-12), and the cache is never older
// than the delivered events or than requested.
func TestAnySequenceOfChangesEndsInADeliveredFinalState(t *testing.T) {
	seed := seedrun.Seed(t)
	for i := range uint64(80) {
		synctest.Test(t, func(t *testing.T) { scenario(t, seed+i) })
		if t.Failed() {
			t.Fatalf("scenario %d of the seed", i)
		}
	}
}

func scenario(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := newNode()
	uids := make([]types.UID, 12)
	for i := range uids {
		uids[i] = types.UID(fmt.Sprint("u", i))
	}
	reused := rnd.IntN(2) == 0 // IDs are reused after a removal, unlike in a real runtime
	const slowest = 700 * time.Millisecond
	delay := func() time.Duration { return time.Duration(rnd.Int64N(int64(slowest))) }

	// Half of the nodes have hints: for all changes, or for most; early or late; and
	// false ones. Their streams break.
	cfg := pleg.Config{Runtime: n, Parallel: 1 + rnd.IntN(8), InspectTimeout: 2 * time.Second}
	lost, late := rnd.IntN(2)*rnd.IntN(3), rnd.IntN(2) == 0
	hint := func(types.UID) {}
	if rnd.IntN(2) == 0 {
		h := &hinting{node: n, hints: make(chan types.UID, 1000)}
		h.lasts = time.Duration(rnd.IntN(2)) * time.Minute
		cfg.Runtime = h
		hint = func(uid types.UID) {
			d := time.Duration(0)
			if late {
				d = delay()
			}
			if rnd.IntN(4) >= lost {
				time.AfterFunc(d, func() {
					select {
					case h.hints <- uid:
					default:
					}
				})
			}
		}
	}

	var mu sync.Mutex // guards the handlers' state
	type state map[types.UID]map[string]pleg.EventType
	reported, followed := make(state), make(state)
	slow := time.Duration(rnd.IntN(3)) * 200 * time.Millisecond
	var g *pleg.Generator
	follower := func(known state) func(pleg.Event) {
		return func(e pleg.Event) {
			mu.Lock()
			if known[e.UID] == nil {
				known[e.UID] = make(map[string]pleg.EventType)
			}
			assert.True(t, replay(known[e.UID], e), "%v does not follow", e)
			mu.Unlock()
			if status, _ := g.Get(e.UID); e.Type == pleg.ContainerRemoved && !reused {
				assert.Empty(t, view(status.Pod())[e.ContainerID], "%v, and yet it is in the cache", e)
			}
			if slow > 0 {
				time.Sleep(slow)
			}
		}
	}
	cfg.Handle = follower(reported)
	g, err := pleg.New(cfg)
	require.NoError(t, err)
	defer run(t, g)()
	following, stopFollowing := false, func() {}
	defer func() { stopFollowing() }()

	var askers sync.WaitGroup
	for i := range 400 {
		uid := uids[rnd.IntN(len(uids))]
		id := fmt.Sprint("c", i)
		if reused {
			id = fmt.Sprint("c", rnd.IntN(4))
		}
		if rnd.IntN(4) == 0 {
			id = "sb" + id
		}
		if p := n.pods[uid]; p != nil && rnd.IntN(3) > 0 {
			ids := slices.Sorted(maps.Keys(view(p.Pod())))
			id = ids[rnd.IntN(len(ids))]
		}
		hint(uid)
		switch rnd.IntN(18) {
		case 0, 1, 2:
			n.start(uid, id)
		case 3, 4, 5:
			n.exit(uid, id)
		case 6, 7:
			n.remove(uid, id)
		case 8:
			n.set(uid, id, runtime.ContainerCreated)
		case 9:
			n.do(func() { delete(n.pods, uid) })
		case 10:
			g.RequestRelist(uid)
		case 11:
			g.RequestReinspect(uid)
		case 12:
			n.do(func() { n.listErr = nil; n.listTakes = delay() })
			if rnd.IntN(3) == 0 {
				n.do(func() { n.listErr = errRefused })
			}
		case 13:
			n.do(func() { n.inspectTake[uid] = delay() })
		case 14:
			n.do(func() { clear(n.inspectErr); clear(n.hang) })
			n.do(func() {
				n.inspectErr[uids[rnd.IntN(len(uids))]] = errRefused
				n.hang[uids[rnd.IntN(len(uids))]] = true
			})
		case 16:
			time.AfterFunc(2*delay(), g.Pin(uid))
		case 17:
			askers.Go(func() {
				pods, err := g.PodsNewerThan(t.Context(), time.Now())
				assert.True(t, err != nil || len(pods) <= len(uids))
			})
			if i > 200 {
				stopFollowing()
				followed, following = make(state), true
				stopFollowing = follow(t, g, follower(followed))
			}
		case 15:
			asked := time.Now()
			askers.Go(func() {
				status, err := g.GetNewerThan(t.Context(), uid, asked)
				if err == nil {
					assert.False(t, status.ObservedAt.Before(asked), "older than asked")
				}
			})
		}
		if rnd.IntN(3) == 0 {
			time.Sleep(delay())
		}
	}

	if !following {
		stopFollowing = follow(t, g, follower(followed))
	}

	// All faults are over, but lost hints are not repeated: the changes they were
	// about are found within the longest period. After that it takes an operation that
	// began before (a list or a hung inspection), a period and a list, an inspection
	// for each pod (at worst serially), and the handler's time for two or three events
	// per container.
	n.do(func() { n.listErr = nil; clear(n.inspectErr); clear(n.hang) })
	handling := slow * 12 * 8 * 3
	time.Sleep(5*time.Minute + 2*time.Second + slowest + time.Second + slowest + 2*time.Duration(len(uids))*slowest + handling)
	askers.Wait()
	synctest.Wait()

	mu.Lock()
	defer mu.Unlock()
	for _, uid := range uids {
		want := &runtime.PodStatus{UID: uid}
		if p := n.pods[uid]; p != nil {
			want = clone(p)
		}
		wantView := view(want.Pod())
		for name, known := range map[string]state{"Handle": reported, "a follower": followed} {
			if known[uid] == nil {
				known[uid] = make(map[string]pleg.EventType)
			}
			assert.Equal(t, wantView, known[uid], "state of %s for %s", name, uid)
		}
		status, err := g.Get(uid)
		assert.NoError(t, err)
		assert.Equal(t, wantView, view(status.Pod()), "cached state of %s", uid)
	}
	assert.Len(t, g.Pods(), len(slices.Collect(maps.Keys(n.pods))))
}
