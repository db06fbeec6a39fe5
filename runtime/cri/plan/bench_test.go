package plan_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A pod of three containers, as it is nearly always (all is well), and while
// one of them is in back-off.
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
	for _, bm := range []struct{ name, scene string }{
		{"well", setup + "has web#4 running"},
		{"backoff", setup},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := newScene(b, bm.scene)
			in := s.input()
			b.ReportAllocs()
			for b.Loop() {
				plan.Compute(in)
			}
		})
	}
}
