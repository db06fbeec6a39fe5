package runtimetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// newMemory returns a runtime whose containers behave as memorySuite says.
func newMemory(*testing.T) runtime.Runtime { return memory() }

func memory() *runtimetest.Runtime {
	rt := new(runtimetest.Runtime)
	rt.Behave("long", runtimetest.Behaviour{Exec: func(ctx context.Context, cmd []string) (runtime.ExecResult, error) {
		if cmd[0] == "print" {
			return runtime.ExecResult{Stdout: []byte(cmd[1]), ExitCode: int32(cmd[2][0] - '0')}, nil
		}
		<-ctx.Done()
		return runtime.ExecResult{}, ctx.Err()
	}})
	rt.Behave("stubborn", runtimetest.Behaviour{Stubborn: true})
	for image, code := range map[string]int32{"exit-0": 0, "exit-1": 1, "exit-3": 3, "exit-5": 5, "exit-7": 7, "exit-*": 42} {
		rt.Behave(image, runtimetest.Behaviour{Exit: &runtimetest.Exit{After: 5 * time.Millisecond, Code: code}})
	}
	return rt
}

func memorySuite() runtimetest.Suite {
	return runtimetest.Suite{
		Long:     v1.Container{Image: "long"},
		Stubborn: v1.Container{Image: "stubborn"},
		Exit: func(code int32) v1.Container {
			if code > 9 {
				return v1.Container{Image: "exit-*"}
			}
			return v1.Container{Image: "exit-" + string(rune('0'+code))}
		},
		Print:  func(text string, code int32) []string { return []string{"print", text, string(rune('0' + code))} },
		Block:  []string{"block"},
		Reopen: func(_ *testing.T, rt runtime.Runtime) runtime.Runtime { return rt },
		Within: synctest.Test,
	}
}

func TestTheRuntimeInMemoryKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, newMemory, memorySuite())
}

func TestTheRuntimeInMemoryKeepsTheContractWithBackOffAndSlowStarts(t *testing.T) {
	s := memorySuite()
	runtimetest.TestRuntime(t, func(*testing.T) runtime.Runtime {
		rt := memory()
		rt.Backoff = 10 * time.Second
		rt.Behave("a", runtimetest.Behaviour{StartDelay: 100 * time.Millisecond, StopDelay: time.Second})
		rt.Behave("b", runtimetest.Behaviour{StartDelay: 200 * time.Millisecond})
		return rt
	}, s)
}

// One runtime for all promises, and the machine's clock: as it is for runtimes
// that cannot live in a bubble. Grace periods take whole seconds and are left
// to the other tests.
func TestTheSuiteRunsOnASharedRuntimeInRealTime(t *testing.T) {
	shared := memory()
	s := memorySuite()
	s.Within, s.Poll, s.Stubborn = nil, 5*time.Millisecond, v1.Container{}
	runtimetest.TestRuntime(t, func(*testing.T) runtime.Runtime { return shared }, s)
}
