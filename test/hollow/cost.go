package hollow

import (
	"fmt"
	"io"
	"net/http"
	"os"
	goruntime "runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// usage is the resource usage of the process.
type usage struct {
	at         time.Time
	cpu        time.Duration // 0: unknown on this system
	memory     uint64        // bytes, anonymous if known
	heap       uint64        // bytes of live objects
	goroutines int
}

// measure returns the current usage, after a garbage collection.
func measure() usage {
	goruntime.GC()
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	u := usage{
		at: time.Now(), cpu: processorTime(), heap: samples[2].Value.Uint64(), goroutines: goruntime.NumGoroutine(),
		memory: samples[0].Value.Uint64() - samples[1].Value.Uint64(),
	}
	if anonymous := labenv.AnonymousMemory(os.Getpid()); anonymous > 0 {
		u.memory = uint64(anonymous)
	}
	return u
}

// A cost is the result of a measurement.
type cost struct {
	o                   options
	bare, before, after usage
	calls               int64
}

// Resources of a kubemark node, according to the documentation of the cluster autoscaler.
const (
	kubemarkMemory = 220 // MB
	kubemarkCPU    = 0.09
)

func (c cost) write(w io.Writer) {
	const mb = 1e6
	took := c.after.at.Sub(c.before.at).Seconds()
	nodes := float64(c.o.nodes)
	memory := float64(c.after.memory) / mb / nodes
	fmt.Fprintf(w, "\n%d nodes, %d pods, measured for %.0f s\n", c.o.nodes, c.o.pods, took)
	fmt.Fprintf(w, "  memory     %6.0f MB in all, %.2f MB a node; kubemark: %d MB a node, %.0f times\n",
		float64(c.after.memory)/mb, memory, kubemarkMemory, kubemarkMemory/memory)
	if c.after.cpu > c.before.cpu {
		cpu := (c.after.cpu - c.before.cpu).Seconds() / took
		fmt.Fprintf(w, "  processors %6.3f in all, %.5f a node; until then %.1f s; kubemark: %.2f a node, %.0f times\n",
			cpu, cpu/nodes, c.before.cpu.Seconds(), kubemarkCPU, kubemarkCPU*nodes/cpu)
	}
	if c.o.program != "" {
		return // the rest is not visible from outside
	}
	fmt.Fprintf(w, "  heap       %6.0f MB in use, %.1f KB a pod\n", float64(c.after.heap)/mb, perPod(float64(c.after.heap)-float64(c.bare.heap), c.o.pods)/1e3)
	fmt.Fprintf(w, "  calls      %6.1f a second, %.2f a node\n", float64(c.calls)/took, float64(c.calls)/took/nodes)
	fmt.Fprintf(w, "  goroutines %6d, %.1f a node\n", c.after.goroutines, float64(c.after.goroutines)/nodes)
}

func perPod(bytes float64, pods int) float64 { return bytes / float64(max(pods, 1)) }

// calls counts calls to the API server.
type calls struct{ n atomic.Int64 }

func (c *calls) count() int64 { return c.n.Load() }

func (c *calls) wrap(next http.RoundTripper) http.RoundTripper { return tripper{next, c} }

// A tripper counts calls.
type tripper struct {
	next  http.RoundTripper
	calls *calls
}

// RoundTrip implements http.RoundTripper.
func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	t.calls.n.Add(1)
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements the interface of client-go that finds the transport.
func (t tripper) WrappedRoundTripper() http.RoundTripper { return t.next }
