//go:build unix

package footprint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A figure is a line of the table.
type figure struct {
	name   string
	format string // of fmt, for one value
}

// The figures in the order of the table.
var (
	allRun         = figure{"start of the program to start of the last container", "%.2f s"}
	concurrency    = figure{"best concurrency", "%.0f"}
	startCPU       = figure{"CPU until then", "%.2f s"}
	startDaemon    = figure{"CPU of containerd until then", "%.2f s"}
	startCRI       = figure{"CRI calls until then", "%.0f"}
	startAPI       = figure{"API requests until then", "%.0f"}
	idleCPU        = figure{"idle CPU", "%.1f millicores"}
	idleDaemon     = figure{"idle CPU of containerd", "%.1f millicores"}
	idleCRI        = figure{"CRI calls per idle minute", "%.0f"}
	idleLists      = figure{"of these, lists", "%.0f"}
	idleAPI        = figure{"API requests per idle minute", "%.0f"}
	rss            = figure{"RSS", "%.1f MiB"}
	pss            = figure{"PSS", "%.1f MiB"}
	anonymous      = figure{"of RSS, anonymous", "%.1f MiB"}
	fileBacked     = figure{"of RSS, file-backed", "%.1f MiB"}
	goroutines     = figure{"goroutines", "%.0f"}
	restart        = figure{"container killed to restarted, median", "%.0f ms"}
	restartMax     = figure{"the same, maximum", "%.0f ms"}
	createStart    = figure{"of this, creation and start, median", "%.0f ms"}
	createStartMax = figure{"the same, maximum  ", "%.0f ms"}
	statusShown    = figure{"container killed to its status in a watch, median", "%.0f ms"}
	statusMax      = figure{"the same, maximum ", "%.0f ms"}
	tableFigures   = []figure{
		allRun, concurrency, startCPU, startDaemon, startCRI, startAPI, idleCPU, idleDaemon, idleCRI, idleLists, idleAPI,
		rss, pss, anonymous, fileBacked, goroutines, restart, restartMax, createStart, createStartMax, statusShown, statusMax,
	}
)

// figures are the results of one measurement.
type figures map[figure]float64

func (f figures) addTimes(median, maximum figure, times []time.Duration) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	f[median] = float64(times[len(times)/2].Microseconds()) / 1000
	f[maximum] = float64(times[len(times)-1].Microseconds()) / 1000
}

// addStart adds the differences of two samples, from the start of the program to that of the last
// container.
func (f figures) addStart(before, after sample, cluster bool) {
	f[startDaemon] = (after.daemon - before.daemon).Seconds()
	f[startCRI] = float64(after.cri.minus(before.cri).all)
	if after.pid != 0 {
		f[startCPU] = (after.cpu - before.cpu).Seconds()
	}
	if cluster {
		f[startAPI] = float64(after.api - before.api)
	}
}

// addIdle adds the differences of two samples around the idle window.
func (f figures) addIdle(before, after sample, cluster bool) {
	window := after.at.Sub(before.at)
	millicores := func(used time.Duration) float64 { return 1000 * used.Seconds() / window.Seconds() }
	perMinute := func(n int64) float64 { return float64(n) / window.Minutes() }
	calls := after.cri.minus(before.cri)
	f[idleCPU], f[idleDaemon] = millicores(after.cpu-before.cpu), millicores(after.daemon-before.daemon)
	f[idleCRI], f[idleLists] = perMinute(calls.all), perMinute(calls.lists)
	if cluster {
		f[idleAPI] = perMinute(after.api - before.api)
	}
}

func (f figures) addMemory(m memory) {
	const mib = 1 << 20
	f[rss], f[pss] = float64(m.rss)/mib, float64(m.pss)/mib
	f[anonymous], f[fileBacked] = float64(m.anonymous)/mib, float64(m.file)/mib
}

// measureNode measures a kubelet or agent with n pods.
func measureNode(ctx context.Context, t testing.TB, o options, name, binary string, n int) (f figures, err error) {
	w := newWorld(t, o.cluster)
	if err := w.putPods(ctx, n); err != nil {
		return nil, err
	}
	f = figures{}
	before, err := w.sample(ctx, 0)
	if err != nil {
		return nil, err
	}
	node, err := w.start(name, binary, o.logs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, node.Stop(90*time.Second)) }()
	ctx, cancel := node.alive(ctx, patience)
	defer cancel()
	last, err := awaitStarts(ctx, w.started, n)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		now, err := w.sample(ctx, node.PID())
		if err != nil {
			return nil, err
		}
		f[allRun] = last.Sub(node.began).Seconds()
		f.addStart(before, now, o.cluster)
	}
	if err := node.serves(ctx); err != nil {
		return nil, err
	}
	if err := w.measureIdle(ctx, o, node, f); err != nil {
		return nil, err
	}
	kills, shown, err := w.kill(ctx, min(o.kills, n))
	f.addTimes(restart, restartMax, kills)
	f.addTimes(statusShown, statusMax, shown)
	return f, err
}

// measureIdleDaemon measures containerd in the idle window, without a node.
func (w *world) measureIdleDaemon(ctx context.Context, o options, f figures) error {
	if err := pause(ctx, o.settle); err != nil {
		return err
	}
	before, err := w.sample(ctx, 0)
	if err != nil {
		return err
	}
	if err := pause(ctx, o.window); err != nil {
		return err
	}
	after, err := w.sample(ctx, 0)
	if err != nil {
		return err
	}
	f[idleDaemon] = 1000 * (after.daemon - before.daemon).Seconds() / after.at.Sub(before.at).Seconds()
	return nil
}

func (w *world) measureIdle(ctx context.Context, o options, node *node, f figures) error {
	if err := pause(ctx, o.settle); err != nil {
		return err
	}
	before, err := w.sample(ctx, node.PID())
	if err != nil {
		return err
	}
	if err := pause(ctx, o.window); err != nil {
		return err
	}
	after, err := w.sample(ctx, node.PID())
	if err != nil {
		return err
	}
	f.addIdle(before, after, o.cluster)
	m, err := memoryOf(node.PID())
	if err != nil {
		return err
	}
	f.addMemory(m)
	count, err := node.goroutines(ctx)
	f[goroutines] = float64(count)
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// kill kills the containers of n pods one after the other, and returns after which time each has
// started again and, with a cluster, when a watch has shown its exit or restart.
func (w *world) kill(ctx context.Context, n int) (restarts, shown []time.Duration, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	var statuses *statusWatch
	if w.control != nil {
		if statuses, err = watchStatuses(ctx, w.api); err != nil {
			return nil, nil, err
		}
		defer statuses.stop()
	}
	for i := range n {
		file := w.Path("started", podName(i))
		pid := findProcess(markVar + "=" + file)
		if pid == 0 {
			return nil, nil, fmt.Errorf("no process of %s", podName(i))
		}
		at := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, nil, os.NewSyscallError("kill", err)
		}
		again, err := awaitRestart(ctx, file, at)
		if err != nil {
			return nil, nil, err
		}
		restarts = append(restarts, again.Sub(at))
		if statuses != nil {
			seen, err := statuses.await(ctx, podName(i))
			if err != nil {
				return nil, nil, err
			}
			shown = append(shown, seen.Sub(at))
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	return restarts, shown, nil
}
