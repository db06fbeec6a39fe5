package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// dump reads pods from lines such as "a web:1:exited web:2:running": a UID and
// its containers with the minute of their creation, which is their ID, too.
func dump(t *testing.T, lines string) []*runtime.Pod {
	t.Helper()
	var pods []*runtime.Pod
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		fields := strings.Fields(line)
		p := &runtime.Pod{UID: types.UID(fields[0]), Name: fields[0], Namespace: "ns"}
		for _, f := range fields[1:] {
			part := strings.Split(f, ":")
			minute := 0
			_, err := fmt.Sscan(part[1], &minute)
			require.NoError(t, err)
			c := runtime.Container{Name: part[0], ID: part[0] + part[1], CreatedAt: epoch.Add(time.Duration(minute) * time.Minute)}
			for _, s := range []runtime.ContainerState{runtime.ContainerCreated, runtime.ContainerRunning, runtime.ContainerExited} {
				if s.String() == part[2] {
					c.State = s
				}
			}
			p.Containers = append(p.Containers, c)
		}
		slices.SortFunc(p.Containers, func(a, b runtime.Container) int { return newest(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
		pods = append(pods, p)
	}
	return pods
}

func TestDeadContainersToRemove(t *testing.T) {
	now := epoch.Add(time.Hour)
	gone := func(uid types.UID) bool { return uid == "gone" }
	for _, tc := range []struct {
		name   string
		pods   string
		policy runtime.GCPolicy
		want   string
	}{
		{"the newest of each is kept rt-130", "a web:1:exited web:2:exited web:3:exited log:1:exited", runtime.GCPolicy{MaxPerContainer: 1}, "web1 web2"},
		{"running containers are kept", "a web:1:exited web:2:exited web:3:running", runtime.GCPolicy{MaxPerContainer: 1}, "web1"},
		{"two are kept cg-3", "a web:1:exited web:2:exited web:3:exited", runtime.GCPolicy{MaxPerContainer: 2}, "web1"},
		{"none is kept", "a web:1:exited web:3:running", runtime.GCPolicy{}, "web1"},
		{"all are kept", "a web:1:exited web:2:exited", runtime.GCPolicy{MaxPerContainer: -1}, ""},
		{"young ones are kept rt-128", "a web:1:exited web:55:exited web:59:exited", runtime.GCPolicy{MinAge: 10 * time.Minute}, "web1"},
		{"containers in state unknown are removed rt-131", "a web:1:unknown web:2:exited", runtime.GCPolicy{MaxPerContainer: 1}, "web1"},
		{"a created one is about to start", "a web:1:exited web:2:created", runtime.GCPolicy{}, "web1"},
		{"one was superseded", "a web:1:created web:2:running", runtime.GCPolicy{}, "web1"},
		{"everything of removed pods is removed rt-129", "gone web:1:exited web:2:created web:3:running\na web:4:exited", runtime.GCPolicy{MaxPerContainer: 1, Keep: func(uid types.UID) bool { return !gone(uid) }}, "web1 web2"},
		{"of terminated pods, too, if the limit requires it cg-11", "gone web:1:exited web:2:created web:3:running\na web:4:exited", runtime.GCPolicy{MaxPerContainer: 1, Terminated: gone}, "web1 web2"},
		{"the node's limit is divided first cg-4", "a web:1:exited\nb log:2:exited log:3:exited log:4:exited", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 3}, "log2 log3"},
		{"and then the oldest", "a web:1:exited\nb log:2:exited\nc db:3:exited", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 2}, "web1"},
		{"no limit", "a web:1:exited web:2:exited", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: -1}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var ids []string
			for _, d := range deadContainers(dump(t, tc.pods), tc.policy, now) {
				ids = append(ids, d.container.ID)
			}
			assert.Equal(t, tc.want, strings.Join(ids, " "))
		})
	}
}

// For random states: running containers are kept, the limits hold, and the newest
// instance of a container of a live pod is removed last.
func TestCollectingKeepsItsLimits(t *testing.T) {
	rnd := seedrun.Rand(t)
	for range 2000 {
		var pods []*runtime.Pod
		for p := range rnd.IntN(4) {
			pod := &runtime.Pod{UID: types.UID(fmt.Sprint(p))}
			for i := range rnd.IntN(8) {
				pod.Containers = append(pod.Containers, runtime.Container{
					ID: fmt.Sprint(p, "/", i), Name: fmt.Sprint(rnd.IntN(3)), State: runtime.ContainerState(rnd.IntN(4)),
					CreatedAt: epoch.Add(-time.Duration(i) * time.Minute),
				})
			}
			pods = append(pods, pod)
		}
		policy := runtime.GCPolicy{MaxPerContainer: rnd.IntN(4) - 1, MaxContainers: rnd.IntN(6), Keep: func(uid types.UID) bool { return uid != "0" }}
		gone := map[string]bool{}
		for _, d := range deadContainers(pods, policy, epoch) {
			require.NotEqual(t, runtime.ContainerRunning, d.container.State)
			require.False(t, gone[d.container.ID], "once")
			gone[d.container.ID] = true
		}
		total := 0
		for _, pod := range pods {
			kept := map[string]int{}
			lost := map[string]bool{}
			for _, c := range pod.Containers {
				switch {
				case c.State == runtime.ContainerRunning:
				case gone[c.ID]:
					lost[c.Name] = true
				case pod.UID == "0":
					t.Fatalf("%s of a removed pod stays", c.ID)
				case c.State != runtime.ContainerCreated:
					require.False(t, lost[c.Name], "an older instance was kept and a newer one removed")
					kept[c.Name]++
					total++
				}
			}
			for _, n := range kept {
				require.True(t, policy.MaxPerContainer < 0 || n <= policy.MaxPerContainer)
			}
		}
		require.True(t, policy.MaxContainers <= 0 || total <= policy.MaxContainers)
	}
}

func TestDeadSandboxesToRemove(t *testing.T) {
	pods := []*runtime.Pod{
		{UID: "lives", Sandboxes: []runtime.Sandbox{
			{ID: "s4", State: runtime.SandboxReady}, {ID: "s3"}, {ID: "s2"}, {ID: "s1"},
		}, Containers: []runtime.Container{{ID: "stays", SandboxID: "s3"}, {ID: "goes", SandboxID: "s2"}}},
		{UID: "sleeps", Sandboxes: []runtime.Sandbox{{ID: "s5", State: runtime.SandboxNotReady}}},
		{UID: "gone", Sandboxes: []runtime.Sandbox{{ID: "s6", State: runtime.SandboxNotReady}, {ID: "s7", State: runtime.SandboxReady}}},
	}
	policy := runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid != "gone" }}
	assert.Equal(t, []string{"s2", "s1", "s6"}, deadSandboxes(pods, map[string]bool{"goes": true}, policy)) // rt-133, cg-7
	policy = runtime.GCPolicy{Terminated: func(uid types.UID) bool { return uid == "gone" }}
	assert.Equal(t, []string{"s2", "s1", "s6"}, deadSandboxes(pods, map[string]bool{"goes": true}, policy), "cg-11")
}

func TestDeadLinksAreRemoved(t *testing.T) {
	dir := t.TempDir()
	r := &Runtime{cfg: Config{Dirs: Dirs{ContainerLogs: dir}}}
	log := filepath.Join(t.TempDir(), "0.log")
	require.NoError(t, os.WriteFile(log, nil, 0o644))
	for name, to := range map[string]string{
		"web_ns_web-live.log": log, "web_ns_web-dead.log": "/nowhere", "web_ns_web-running.log": "/nowhere", "other": "/nowhere",
		"web_ns_web-created.log": "/nowhere", "web_ns_web-unknown.log": "/nowhere", "web_ns_web-removed.log": "/nowhere",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file.log"), nil, 0o644))
	require.NoError(t, r.removeDeadLinks([]*runtime.Pod{{Name: "web", Namespace: "ns", Containers: []runtime.Container{
		{Name: "web", ID: "x://running", State: runtime.ContainerRunning}, {Name: "web", ID: "x://dead", State: runtime.ContainerExited},
		{Name: "web", ID: "x://created", State: runtime.ContainerCreated}, {Name: "web", ID: "x://unknown", State: runtime.ContainerUnknown},
	}}}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.Equal(t, []string{"file.log", "other", "web_ns_web-created.log", "web_ns_web-live.log", "web_ns_web-running.log", "web_ns_web-unknown.log"}, names) // rt-135
}

func TestASandboxThatCannotBeRemovedIsTriedLessAndLess(t *testing.T) {
	var s stuckSandboxes
	now := epoch
	var rests []time.Duration
	for range 9 {
		s.tried("a", true, now)
		rest := time.Duration(0)
		for !s.due("a", now.Add(rest)) {
			rest += time.Minute
		}
		rests = append(rests, rest)
		now = now.Add(rest)
	}
	m := time.Minute
	assert.Equal(t, []time.Duration{0, 0, m, 2 * m, 4 * m, 8 * m, 15 * m, 15 * m, 15 * m}, rests)
	assert.True(t, s.due("b", now))
	s.tried("a", true, now)
	s.retain([]string{"a", "c"})
	assert.False(t, s.due("a", now))
	s.tried("a", false, now)
	assert.True(t, s.due("a", now), "the back-off was dropped")
	s.tried("b", true, now)
	s.retain(nil)
	assert.Empty(t, s.all)
}
