package pleg_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// pod makes a pod of containers written "id:state", or of sandboxes if the
// state is ready or notready. The first is the newest.
func pod(things ...string) *runtime.Pod {
	p := &runtime.Pod{UID: "u"}
	for i, thing := range things {
		id, s, _ := cut(thing)
		at := time.Unix(int64(1000-i), 0)
		switch s {
		case "ready":
			p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{ID: id, State: runtime.SandboxReady, CreatedAt: at})
		case "notready":
			p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{ID: id, State: runtime.SandboxNotReady, CreatedAt: at})
		case "lost":
			p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{ID: id, CreatedAt: at})
		case "running":
			p.Containers = append(p.Containers, runtime.Container{ID: id, State: runtime.ContainerRunning, CreatedAt: at})
		case "exited":
			p.Containers = append(p.Containers, runtime.Container{ID: id, State: runtime.ContainerExited, CreatedAt: at})
		case "created":
			p.Containers = append(p.Containers, runtime.Container{ID: id, State: runtime.ContainerCreated, CreatedAt: at})
		case "unknown":
			p.Containers = append(p.Containers, runtime.Container{ID: id, CreatedAt: at})
		default:
			panic("no such state: " + thing)
		}
	}
	return p
}

func cut(s string) (id, state string, ok bool) {
	for i := range s {
		if s[i] == ':' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func TestDiff(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new *runtime.Pod
		want     []string
	}{
		"nothing and nothing":                     {nil, nil, nil},
		"nothing and a pod with nothing":          {nil, pod(), nil},
		"equal states (pleg-8)":                   {pod("a:running", "s:ready"), pod("a:running", "s:ready"), nil},
		"another order":                           {pod("a:running", "b:exited"), pod("b:exited", "a:running"), nil},
		"first seen running (pleg-4)":             {nil, pod("a:running"), []string{"u ContainerStarted a"}},
		"first seen exited (pleg-5)":              {nil, pod("a:exited"), []string{"u ContainerDied a"}},
		"running, exited (pleg-5)":                {pod("a:running"), pod("a:exited"), []string{"u ContainerDied a"}},
		"created, running (pleg-4)":               {pod("a:created"), pod("a:running"), []string{"u ContainerStarted a"}},
		"created (pleg-6, pleg-1, pleg-39)":       {nil, pod("a:created"), []string{"u ContainerChanged a"}},
		"running, unknown (pleg-6)":               {pod("a:running"), pod("a:unknown"), []string{"u ContainerChanged a"}},
		"created, unknown":                        {pod("a:created"), pod("a:unknown"), []string{"u ContainerChanged a"}},
		"exited, gone (pleg-7)":                   {pod("a:exited"), nil, []string{"u ContainerRemoved a"}},
		"running, gone (pleg-7)":                  {pod("a:running"), nil, []string{"u ContainerDied a", "u ContainerRemoved a"}},
		"unknown, gone (pleg-7)":                  {pod("a:unknown"), pod(), []string{"u ContainerDied a", "u ContainerRemoved a"}},
		"sandbox ready is started (pleg-2)":       {nil, pod("s:ready"), []string{"u ContainerStarted s"}},
		"sandbox not ready has died (pleg-2)":     {pod("s:ready"), pod("s:notready"), []string{"u ContainerDied s"}},
		"sandbox in another state (pleg-2)":       {pod("s:ready"), pod("s:lost"), []string{"u ContainerChanged s"}},
		"sandbox gone (pleg-15)":                  {pod("s:notready"), nil, []string{"u ContainerRemoved s"}},
		"an ID twice counts as its newest":        {nil, pod("a:running", "a:exited"), []string{"u ContainerStarted a"}},
		"an ID twice, unchanged":                  {pod("a:running"), pod("a:running", "a:exited"), nil},
		"the oldest comes first, then by ID":      {nil, pod("a:running", "b:running", "s:ready"), []string{"u ContainerStarted s", "u ContainerStarted b", "u ContainerStarted a"}},
		"gone before died before changed and new": {pod("x:exited", "d:running"), pod("n:running", "c:created", "d:exited"), []string{"u ContainerRemoved x", "u ContainerDied d", "u ContainerChanged c", "u ContainerStarted n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for e := range pleg.Diff(tc.old, tc.new) {
				got = append(got, e.String())
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestDiffStopsWhenYieldReturnsFalse(t *testing.T) {
	n := 0
	for range pleg.Diff(pod("a:running", "b:running"), nil) {
		n++
		break
	}
	assert.Equal(t, 1, n)
}

// view is the part of a pod's state that events report.
func view(p *runtime.Pod) map[string]pleg.EventType {
	v := make(map[string]pleg.EventType)
	if p == nil {
		return v
	}
	// In reverse, so that of two entries with the same ID the newest counts, and
	// containers count after sandboxes as listed.
	for _, c := range slices.Backward(p.Containers) {
		switch c.State {
		case runtime.ContainerRunning:
			v[c.ID] = pleg.ContainerStarted
		case runtime.ContainerExited:
			v[c.ID] = pleg.ContainerDied
		default:
			v[c.ID] = pleg.ContainerChanged
		}
	}
	for _, s := range slices.Backward(p.Sandboxes) {
		switch s.State {
		case runtime.SandboxReady:
			v[s.ID] = pleg.ContainerStarted
		case runtime.SandboxNotReady:
			v[s.ID] = pleg.ContainerDied
		default:
			v[s.ID] = pleg.ContainerChanged
		}
	}
	return v
}

// replay applies an event to a view, and reports whether it makes sense there.
func replay(v map[string]pleg.EventType, e pleg.Event) bool {
	before, known := v[e.ContainerID]
	switch e.Type {
	case pleg.PodSync:
		return e.ContainerID == ""
	case pleg.ContainerRemoved:
		delete(v, e.ContainerID)
		return known && before == pleg.ContainerDied
	default:
		v[e.ContainerID] = e.Type
		return before != e.Type || e.Type == pleg.ContainerChanged
	}
}

// randomPod decodes a pod from data: one byte per container or sandbox.
func randomPod(data []byte) *runtime.Pod {
	if len(data) == 0 {
		return nil
	}
	p := &runtime.Pod{UID: "u"}
	for i, b := range data {
		at := time.Unix(int64(b%7), int64(-i))
		id := string(rune('a' + b%32))
		if b&128 != 0 {
			p.Sandboxes = append(p.Sandboxes, runtime.Sandbox{ID: id, State: runtime.SandboxState(b >> 5 & 3), CreatedAt: at})
		} else {
			p.Containers = append(p.Containers, runtime.Container{ID: id, State: runtime.ContainerState(b >> 5 & 3), CreatedAt: at})
		}
	}
	return p
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte{}, []byte{1})
	f.Add([]byte{1, 0x42, 0x83}, []byte{0x61})
	f.Add([]byte("abcdefgh"), []byte("hgfedcba"))
	f.Add([]byte{0x20, 0x20}, []byte{0x40, 0x60, 0xa0})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		old, new := randomPod(a), randomPod(b)
		v := view(old)
		removals := true
		for e := range pleg.Diff(old, new) {
			assert.True(t, replay(v, e), "%v does not follow", e)
			_, stays := view(new)[e.ContainerID]
			assert.False(t, !stays && !removals, "%v comes after an addition", e)
			removals = !stays
		}
		assert.Equal(t, view(new), v, "replaying diff(a, b) on a gives b")
		assert.Equal(t, slices.Collect(pleg.Diff(old, new)), slices.Collect(pleg.Diff(old, new)), "twice the same")
		for e := range pleg.Diff(old, old) {
			t.Errorf("nothing changed, and yet %v", e)
		}
	})
}

func TestEventsHaveTheKubeletsNames(t *testing.T) { // pleg-3
	assert.Equal(t, []pleg.EventType{"ContainerStarted", "ContainerDied", "ContainerRemoved", "PodSync", "ContainerChanged"},
		[]pleg.EventType{pleg.ContainerStarted, pleg.ContainerDied, pleg.ContainerRemoved, pleg.PodSync, pleg.ContainerChanged})
	assert.Equal(t, "u PodSync", pleg.Event{UID: "u", Type: pleg.PodSync}.String())
}

func TestRemovalsDoNotMatterToAPod(t *testing.T) {
	for typ, matters := range map[pleg.EventType]bool{
		pleg.ContainerStarted: true, pleg.ContainerDied: true, pleg.ContainerChanged: true, pleg.PodSync: true,
		pleg.ContainerRemoved: false,
	} {
		assert.Equal(t, matters, pleg.Event{UID: "u", Type: typ}.Matters(), typ)
	}
}
