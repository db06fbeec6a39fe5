package runtimetest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Pod p has three exited and one running instance of web and two exited ones of job; pod
// q has two exited ones of web and a stopped sandbox. Each was created a minute after
// the previous one, in this order: p/web 0-3, p/job 0-1, q/web 0-1.
func garbage(t *testing.T) *runtimetest.Runtime {
	rt := new(runtimetest.Runtime)
	for _, dead := range []string{"p web", "p web", "p web", "p web", "p job", "p job", "q web", "q web"} {
		pod, name, _ := strings.Cut(dead, " ")
		time.Sleep(time.Minute)
		rt.Start(types.UID(pod), name)
		if len(mustLook(t, rt, "p").Containers) != 4 {
			require.NoError(t, rt.Exit(types.UID(pod), name, 0))
		}
	}
	rt.Crash("q")
	return rt
}

func TestCollectGarbage(t *testing.T) {
	without := func(gone types.UID) func(types.UID) bool {
		return func(uid types.UID) bool { return uid != gone }
	}
	for _, tc := range []struct {
		name   string
		policy runtime.GCPolicy
		left   string
	}{
		{"keeps none (zero)", runtime.GCPolicy{}, "p: web3; q:"},
		{"keeps all", runtime.GCPolicy{MaxPerContainer: -1}, "p: job1 job0 web3 web2 web1 web0; q: web1 web0"},
		{"keeps the newest one (rt-130)", runtime.GCPolicy{MaxPerContainer: 1}, "p: job1 web3 web2; q: web1"},
		{"keeps two", runtime.GCPolicy{MaxPerContainer: 2}, "p: job1 job0 web3 web2 web1; q: web1 web0"},
		{"spares the young (rt-128)", runtime.GCPolicy{MinAge: 4 * time.Minute}, "p: job1 web3; q: web1 web0"},
		{"in all: one each, then the oldest go (rt-130)", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 3}, "p: job1 web3 web2; q: web1"},
		{"in all: fewer than there are names", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 1}, "p: web3; q: web1"},
		{"in all: more than there are", runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 50}, "p: job1 job0 web3 web2 web1 web0; q: web1 web0"},
		{"of a removed pod (rt-129, rt-133)", runtime.GCPolicy{MaxPerContainer: -1, Keep: without("q")}, "p: job1 job0 web3 web2 web1 web0"},
		{"of a removed pod that runs", runtime.GCPolicy{MaxPerContainer: -1, Keep: without("p")}, "p: web3; q: web1 web0"},
		{"of a removed pod, young ones are kept", runtime.GCPolicy{MaxPerContainer: -1, MinAge: 90 * time.Second, Keep: without("q")}, "p: job1 job0 web3 web2 web1 web0; q: web1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := garbage(t)
				time.Sleep(time.Minute)
				require.NoError(t, rt.CollectGarbage(t.Context(), tc.policy))
				var left []string
				for _, uid := range []types.UID{"p", "q"} {
					s := mustLook(t, rt, uid)
					if s.Pod() == nil {
						continue
					}
					assert.Len(t, s.Sandboxes, 1)
					words := string(uid) + ":"
					for _, c := range s.Containers {
						words += " " + c.Name + string(rune('0'+c.RestartCount))
					}
					left = append(left, words)
				}
				assert.Equal(t, tc.left, strings.Join(left, "; "))
				for i, p := range mustPods(t, rt) {
					if i > 0 {
						assert.False(t, p.CreatedAt.After(mustPods(t, rt)[i-1].CreatedAt), "newest first")
					}
				}
			})
		})
	}
}

func TestOldSandboxesGoWithTheirLastContainer(t *testing.T) { // rt-133
	rt := new(runtimetest.Runtime)
	pod := newPod("p", "web")
	for range 3 {
		mustSync(t, rt, pod)
		rt.Crash("p")
	}
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{MaxPerContainer: 2}))
	s := mustLook(t, rt, "p")
	require.Len(t, s.Sandboxes, 2)
	assert.Equal(t, uint32(2), s.Sandboxes[0].Attempt)
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	s = mustLook(t, rt, "p")
	assert.Empty(t, s.Containers)
	require.Len(t, s.Sandboxes, 1, "the newest one of a desired pod is kept")
	mustSync(t, rt, pod)
	assert.Equal(t, int32(3), mustLook(t, rt, "p").Container("web").RestartCount, "counts survive garbage collection (rt-75)")
}
