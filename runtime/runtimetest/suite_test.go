package runtimetest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// newMemory returns a runtime whose containers behave as memorySuite specifies.
func newMemory(*testing.T) runtime.Runtime { return memory() }

// newFull returns a runtime with all optional interfaces.
func newFull(t *testing.T) runtime.Runtime { return &full{Runtime: memory(), dir: t.TempDir()} }

func memory() *runtimetest.Runtime {
	rt := new(runtimetest.Runtime)
	for image, b := range memoryBehaviors() {
		rt.Behave(image, b)
	}
	return rt
}

// memoryBehaviors are the behaviors of the images of memorySuite.
func memoryBehaviors() map[string]fake.Behavior {
	long := fake.Behavior{
		StopDelay: time.Millisecond,
		Exec: func(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
			out := s.Stdout
			switch cmd[0] {
			case "print":
			case "print-err":
				out = s.Stderr
			default:
				<-ctx.Done()
				return 0, ctx.Err()
			}
			_, err := io.WriteString(out, cmd[1])
			return int32(cmd[2][0] - '0'), err
		},
	}
	behaviors := map[string]fake.Behavior{"long": long, "long-2": long, "stubborn": {IgnoreTERM: true}}
	for image, code := range map[string]int32{"exit-0": 0, "exit-1": 1, "exit-3": 3, "exit-5": 5, "exit-7": 7, "exit-*": 42, "reports out of luck": 1} {
		behaviors[image] = fake.Behavior{Exit: &fake.Exit{After: 5 * time.Millisecond, Code: code}}
	}
	return behaviors
}

func memorySuite() runtimetest.Suite {
	return runtimetest.Suite{
		Containers: runtimetest.Containers{
			Long:       v1.Container{Image: "long"},
			Stubborn:   v1.Container{Image: "stubborn"},
			Repeats:    v1.Container{Image: "repeats"},
			OtherImage: "long-2",
			Message:    func(text string) v1.Container { return v1.Container{Image: "reports " + text} },
			Prints:     func(text string) v1.Container { return v1.Container{Image: "prints " + text} },
			Listens:    func(port int32) v1.Container { return v1.Container{Image: fmt.Sprint("greets ", port)} },
			Exit: func(code int32) v1.Container {
				if code > 9 {
					return v1.Container{Image: "exit-*"}
				}
				return v1.Container{Image: "exit-" + string(rune('0'+code))}
			},
		},
		Commands: runtimetest.Commands{
			Print:    func(text string, code int32) []string { return []string{"print", text, string(rune('0' + code))} },
			PrintErr: func(text string, code int32) []string { return []string{"print-err", text, string(rune('0' + code))} },
			Block:    []string{"block"},
			Echo:     []string{"echo"},
			Size:     []string{"size"},
		},
		Backend: runtimetest.Backend{
			Reopen: func(_ *testing.T, rt runtime.Runtime) runtime.Runtime { return rt },
			LoseSandbox: func(_ *testing.T, rt runtime.Runtime, uid types.UID) error {
				rt.(interface{ Crash(types.UID) }).Crash(uid)
				return nil
			},
			Calls: func(rt runtime.Runtime) int { return rt.(interface{ Calls() int }).Calls() },
		},
		Within: synctest.Test,
	}
}

// bareSuite is for the plain runtime in memory, which makes no calls of a backend.
func bareSuite() runtimetest.Suite {
	s := memorySuite()
	s.Backend.Calls = nil
	s.Gaps = map[string]string{
		"StreamExecPassesInput":     "there is no input in memory",
		"StreamExecResizesTerminal": "there is no terminal in memory",
		"TerminationMessageIsKept":  "there are no files in memory",
	}
	return s
}

func TestTheRuntimeInMemoryWithAllPowersKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, newFull, memorySuite())
}

func TestTheRuntimeInMemoryKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, newMemory, bareSuite())
}

func TestTheRuntimeInMemoryKeepsTheContractWithBackOffAndSlowStarts(t *testing.T) {
	s := bareSuite()
	runtimetest.TestRuntime(t, func(*testing.T) runtime.Runtime {
		rt := memory()
		rt.Backoff = 10 * time.Second
		rt.Behave("a", fake.Behavior{StartDelay: 100 * time.Millisecond, StopDelay: time.Second})
		rt.Behave("b", fake.Behavior{StartDelay: 200 * time.Millisecond})
		return rt
	}, s)
}

// One runtime for all checks, in real time, as for runtimes that cannot run in a synctest
// bubble. Grace periods take whole seconds and are covered by
// other tests.
func TestTheSuiteRunsOnASharedRuntimeInRealTime(t *testing.T) {
	shared := memory()
	s := bareSuite()
	s.Timing.PollInterval, s.Gaps = 5*time.Millisecond, nil
	s.Containers.Stubborn, s.Containers.Message, s.Commands.Echo, s.Commands.Size = v1.Container{}, nil, nil, nil
	s.Within, s.Parallel = nil, 16
	runtimetest.TestRuntime(t, func(*testing.T) runtime.Runtime { return shared }, s)
}
