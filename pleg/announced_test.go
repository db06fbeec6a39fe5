package pleg_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// An announcing node is a hinting one whose events contain the status of the pod.
type announcing struct {
	*hinting
	events  map[types.UID]*runtime.PodStatus
	answers int // of PodStatus, from an event
}

func newAnnouncing() *announcing {
	return &announcing{
		hinting: &hinting{node: newNode(), hints: make(chan types.UID), breaks: make(chan struct{})},
		events:  map[types.UID]*runtime.PodStatus{},
	}
}

// announce sends an event with the current status of a pod.
func (a *announcing) announce(uid types.UID) {
	a.do(func() { a.events[uid] = clone(a.pods[uid]) })
	a.hints <- uid
	synctest.Wait()
}

func (a *announcing) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	var announced *runtime.PodStatus
	a.do(func() {
		if runtime.AnnouncedAllowed(ctx) && a.events[uid] != nil {
			announced = clone(a.events[uid])
			a.answers++
		}
	})
	if announced != nil {
		return announced, nil
	}
	return a.hinting.PodStatus(ctx, uid)
}

// announcingGenerator runs a Generator that trusts the events of the node, with a pod that it has inspected.
func announcingGenerator(t *testing.T) (*announcing, *listener, *pleg.Generator) {
	a, l := newAnnouncing(), new(listener)
	a.start("u", "sb")
	g := newGenerator(t, a, l, pleg.Config{})
	t.Cleanup(run(t, g))
	time.Sleep(2 * time.Second)
	l.take()
	a.do(func() { a.inspections = map[types.UID]int{} })
	return a, l, g
}

func TestTheStatusOfAnEventSavesAnInspection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l, g := announcingGenerator(t)
		a.start("u", "c")
		a.announce("u")
		assert.Equal(t, []string{"u ContainerStarted c"}, l.take())
		assert.Zero(t, a.inspected("u"))
		began := time.Now()
		time.Sleep(time.Millisecond)
		status, err := g.GetNewerThan(t.Context(), "u", began)
		assert.NoError(t, err)
		assert.Equal(t, runtime.ContainerRunning, status.Containers[0].State)
		assert.Zero(t, a.inspected("u"), "no change was made since the event")
		time.Sleep(time.Hour)
		assert.Zero(t, a.inspected("u"), "lists confirm the status")
	})
}

// An exit without an event is found by the list that follows each change, although the status of the last
// event still has the container as running.
func TestALostEventIsFoundByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l, g := announcingGenerator(t)
		a.start("u", "c")
		a.announce("u")
		l.take()
		a.exit("u", "c")
		g.RequestRelist("u") // answered by the event
		synctest.Wait()
		assert.Empty(t, l.take())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"u ContainerDied c"}, l.take())
		assert.Equal(t, 1, a.inspected("u"), "a difference to a list is inspected")
		answers := a.answers
		// No event has followed: they are not trusted. At this instant no list is due.
		time.Sleep(6*time.Second + 500*time.Millisecond)
		g.RequestRelist("u")
		synctest.Wait()
		assert.Equal(t, 2, a.inspected("u"))
		assert.Equal(t, answers, a.answers)
		assert.Empty(t, l.take(), "the outdated event does not start the container again")
	})
}

func TestAnAnnouncedStatusIsNotAllowed(t *testing.T) {
	for name, prepare := range map[string]func(a *announcing, g *pleg.Generator){
		"for a change that has no event": func(_ *announcing, g *pleg.Generator) { g.RequestReinspect("u") },
		"after a failure": func(a *announcing, g *pleg.Generator) {
			a.do(func() { a.events["u"], a.inspectErr["u"] = nil, errRefused })
			g.RequestRelist("u")
			synctest.Wait()
			a.do(func() { a.inspectErr["u"], a.inspections["u"] = nil, 0 })
			a.announce("u")
		},
		"while a list is in progress": func(a *announcing, g *pleg.Generator) {
			a.do(func() { a.listTakes = time.Second })
			go func() { _, _ = g.PodsNewerThan(context.Background(), time.Now()) }()
			synctest.Wait()
			g.RequestRelist("u")
		},
		"while no stream is open": func(a *announcing, g *pleg.Generator) {
			a.break1()
			synctest.Wait()
			g.RequestRelist("u")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _, g := announcingGenerator(t)
				a.announce("u")
				assert.Equal(t, 1, a.answers)
				prepare(a, g)
				synctest.Wait()
				assert.Equal(t, 1, a.answers)
				assert.Equal(t, 1, a.inspected("u"))
				time.Sleep(2 * time.Second) // a list in progress ends
			})
		})
	}
}
