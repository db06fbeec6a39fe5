package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A pod of three containers, with nothing to do, and with one container in
// back-off.
func BenchmarkCompute(b *testing.B) {
	const setup = `
		init setup
		init proxy policy=Always
		container web
		container log
		container app
		sandbox s0
		has setup#0 exited=0
		has proxy#0 running
		has log#0 running
		has app#0 running
		has web#3 exited=1
		`
	for _, bm := range []struct{ name, model string }{
		{"well", setup + "has web#4 running"},
		{"backoff", setup},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := newModel(b, bm.model)
			in := s.input()
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(in)
			}
		})
	}
}

// A node of 1,000 pods with nothing to do, with probe results and resources. One
// iteration of b.Loop computes a plan for each.
func BenchmarkThousandPodsWithNothingToDo(b *testing.B) {
	inputs := quietPods(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range inputs {
			if p := plan.Compute(inputs[i]); !p.Empty() {
				b.Fatal(p)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/pod")
}

func TestNothingToDoAllocatesNothing(t *testing.T) {
	in := quietPods(t, 1)[0]
	require.Zero(t, testing.AllocsPerRun(100, func() { plan.Compute(in) }))
}

func quietPods(t testing.TB, n int) []plan.Input {
	var all []plan.Input
	for i := range n {
		s := newModel(t, `
			init setup
			init proxy policy=Always startup liveness cpu=100m/200m
			container web startup liveness cpu=100m/200m memory=64Mi/128Mi
			container log liveness
			container app rule=RestartAllContainers:In:42 policy=Always
			sandbox s0
			has setup#0 exited=0
			has proxy#0 running started live
			has web#2 exited=1
			has web#3 running started live
			has log#0 running live
			has app#0 running`)
		s.pod.UID = types.UID(fmt.Sprint(i))
		s.status = cloneStatus(s.status)
		in := s.input()
		require.IsType(t, new(runtime.ProbeResults), in.Probes)
		all = append(all, in)
	}
	return all
}
