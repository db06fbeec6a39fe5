//go:build unix

package footprint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// startProfiles begins to profile this process. stop writes the profiles to dir, unless that is
// empty.
func startProfiles(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(10_000) // ns
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		errs := []error{cpu.Close()}
		for _, name := range []string{"allocs", "mutex", "block"} {
			errs = append(errs, writeProfile(name, filepath.Join(dir, name+".pprof")))
		}
		runtime.SetMutexProfileFraction(0)
		runtime.SetBlockProfileRate(0)
		return errors.Join(errs...)
	}, nil
}

// profileIdle profiles the idle window, as idle.pprof and heap.pprof, and returns what is in memory,
// by the functions that allocated it.
func profileIdle(ctx context.Context, o options) (memory string, err error) {
	if err := pause(ctx, o.settle); err != nil {
		return "", err
	}
	cpu, err := os.Create(filepath.Join(o.profiles, "idle.pprof"))
	if err != nil {
		return "", err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return "", errors.Join(err, cpu.Close())
	}
	var first runtime.MemStats
	runtime.ReadMemStats(&first)
	before, err := labenv.CPUTime(os.Getpid())
	err = errors.Join(err, pause(ctx, o.window))
	after, afterErr := labenv.CPUTime(os.Getpid())
	pprof.StopCPUProfile()
	if err := errors.Join(err, afterErr, cpu.Close()); err != nil {
		return "", err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	resident, err := memoryOf(os.Getpid())
	if err != nil {
		return "", err
	}
	runtime.GC()
	var live runtime.MemStats
	runtime.ReadMemStats(&live)
	const mib = 1 << 20
	memory = fmt.Sprintf("\nIdle: %.1f millicores; %.2f MiB allocated per minute. Anonymous memory: %.1f MiB. Heap in use %.1f MiB, after a collection %.1f, of which live %.1f; free and not released %.1f MiB; stacks %.1f MiB; structures of the Go runtime %.1f MiB.\n",
		1000*(after-before).Seconds()/o.window.Seconds(), float64(m.TotalAlloc-first.TotalAlloc)/mib/o.window.Minutes(),
		float64(resident.anonymous)/mib, float64(m.HeapInuse)/mib, float64(live.HeapInuse)/mib, float64(live.HeapAlloc)/mib,
		float64(m.HeapIdle-m.HeapReleased)/mib, float64(m.StackInuse)/mib, float64(m.Sys-m.HeapSys-m.StackSys)/mib,
	)
	runtime.GC() // the profile is that of the last but one
	memory += sitesTable(liveSites(liveProfile(), runtime.MemProfileRate), 30)
	return memory, writeProfile("heap", filepath.Join(o.profiles, "heap.pprof"))
}

func writeProfile(name, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
