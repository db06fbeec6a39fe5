package metrics_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
)

// The cost of one call of a hook to its caller.
func BenchmarkHooks(b *testing.B) {
	w := newWorld(b)
	pod := web()
	relisted, worked, called, ran := w.PLEG().Relisted, w.PodWorker().Synced, w.remote.Runtime().Called, w.Prober().Ran
	changed, request := w.Status().Changed, w.cluster.Server().Request
	for name, call := range map[string]func(){
		"pleg/Relisted":    func() { relisted(pleg.RelistInfo{Start: at, Duration: time.Millisecond, Interval: time.Second}) },
		"podworker/Synced": func() { worked(podworker.SyncInfo{Pod: pod, State: podworker.Syncing, Duration: time.Millisecond}) },
		"cri/Called":       func() { called(cri.CallInfo{Operation: "list_containers", Duration: time.Millisecond}) },
		"prober/Ran": func() {
			ran(prober.AttemptInfo{Pod: pod, Container: "nginx", Result: runtime.ProbeSuccess, Duration: time.Millisecond})
		},
		"status/Changed": func() { changed(status.ChangedInfo{Pod: pod, Old: v1.PodStatus{Phase: v1.PodRunning}}) },
		"server/Request": func() { request(server.RequestInfo{Method: "GET", Path: "pods", ServerType: "readwrite"}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// A scrape of a node with 110 pods.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(b).known().live(b)
	full := busy(110)
	w.stats.set(full, nil)
	for i := range 110 {
		pod := web()
		pod.UID = types.UID(full.Pods[i].PodRef.UID)
		pod.Name = full.Pods[i].PodRef.Name
		w.Prober().Ran(prober.AttemptInfo{Pod: pod, Container: "nginx", Result: runtime.ProbeSuccess})
	}
	for path, h := range w.Handlers(w.sources) {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(discard{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, path, nil))
			}
		})
	}
}

type discard struct{ *httptest.ResponseRecorder }

func (discard) Write(p []byte) (int, error) { return io.Discard.Write(p) }

// The hooks of a busy component do not allocate.
func TestHooksAllocateNothing(t *testing.T) {
	w := newWorld(t)
	called, ran := w.remote.Runtime().Called, w.Prober().Ran
	pod := web()
	for name, call := range map[string]func(){
		"cri/Called": func() { called(cri.CallInfo{Operation: "list_containers", Duration: time.Millisecond}) },
		"prober/Ran": func() { ran(prober.AttemptInfo{Pod: pod, Container: "nginx", Result: runtime.ProbeSuccess}) },
	} {
		call()
		if n := testing.AllocsPerRun(100, call); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
