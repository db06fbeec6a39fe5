package containers_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A subject is a runtime, its backend, and its configuration to reopen it.
type subject struct {
	*containers.Runtime
	below *containerstest.Backend
	cfg   containers.Config
}

func over(t *testing.T, cfg containers.Config, below *containerstest.Backend) *subject {
	t.Helper()
	return &subject{open(t, cfg), below, cfg}
}

// open returns a Runtime that is closed at the end of the test.
func open(t *testing.T, cfg containers.Config) *containers.Runtime {
	t.Helper()
	rt, err := containers.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

// configOf returns a configuration over a backend, with directories of the test.
func configOf(t *testing.T, backend containers.Backend) containers.Config {
	dir := t.TempDir()
	return containers.Config{
		Backend: backend, Node: "node", Support: containers.Support{Mounts: true, HostNamespaces: true},
		Engine: cri.Config{Name: "fake", Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}},
	}
}

func image(name string) v1.Container {
	return v1.Container{Image: "fake.test/" + name + ":1", ImagePullPolicy: v1.PullIfNotPresent}
}

func exits(code int32) v1.Container { return image(fmt.Sprint("exit-", code)) }

// shellOf implements the commands of the suite.
func shellOf(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
	out := s.Stdout
	switch cmd[0] {
	case "block":
		<-ctx.Done()
		return 0, ctx.Err()
	case "echo":
		_, err := io.Copy(s.Stdout, s.Stdin)
		return 0, err
	case "size":
		for {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case size := <-s.Resize:
				if _, err := fmt.Fprintln(s.Stdout, size.Height, size.Width); err != nil {
					return 0, err
				}
			}
		}
	case "print-err":
		out = s.Stderr
	}
	code, err := strconv.ParseInt(cmd[2], 10, 32)
	if err == nil && out != nil {
		_, err = io.WriteString(out, cmd[1])
	}
	return int32(code), err
}

// newFake returns a backend with the images of the suite, changed by more.
func newFake(more func(*fake.Behavior)) *containerstest.Backend {
	b := new(containerstest.Backend)
	behave := func(c v1.Container, behavior fake.Behavior) {
		if more != nil {
			more(&behavior)
		}
		b.Behave(c.Image, behavior)
	}
	for _, name := range []string{"long", "other"} {
		behave(image(name), fake.Behavior{Exec: shellOf, Attach: func(ctx context.Context, s runtime.Streams) error {
			_, err := io.Copy(s.Stdout, s.Stdin)
			return err
		}})
	}
	behave(image("prints"), fake.Behavior{
		Exit: &fake.Exit{After: 3 * time.Second, Code: 1},
		Logs: []fake.LogLine{{Text: "line %d", Every: 500 * time.Millisecond, Times: 5}, {Text: "failed", Err: true}},
	})
	behave(image("stubborn"), fake.Behavior{IgnoreTERM: true})
	behave(image("reports"), fake.Behavior{Exit: &fake.Exit{After: 200 * time.Millisecond, Code: 1, Message: "out of luck"}})
	for code := range int32(43) {
		behave(exits(code), fake.Behavior{Exit: &fake.Exit{After: 200 * time.Millisecond, Code: code}})
	}
	return b
}

// suite has everything that the fake supports.
func suite() runtimetest.Suite {
	return runtimetest.Suite{
		Containers: runtimetest.Containers{
			Long: image("long"), OtherImage: image("other").Image, Exit: exits, Stubborn: image("stubborn"), Repeats: image("long"),
			Message: func(string) v1.Container { return image("reports") },
		},
		Commands: runtimetest.Commands{
			Print:    func(text string, code int32) []string { return []string{"print", text, fmt.Sprint(code)} },
			PrintErr: func(text string, code int32) []string { return []string{"print-err", text, fmt.Sprint(code)} },
			Block:    []string{"block"}, Echo: []string{"echo"}, Size: []string{"size"},
		},
		Backend: runtimetest.Backend{
			Reopen: func(t *testing.T, rt runtime.Runtime) runtime.Runtime {
				was := rt.(*subject)
				return over(t, was.cfg, was.below)
			},
			LoseSandbox: func(t *testing.T, rt runtime.Runtime, _ types.UID) error {
				groups, err := rt.(*subject).below.Groups(t.Context())
				for _, g := range groups {
					if g.Running {
						return rt.(*subject).below.Crash(g.ID)
					}
				}
				return err
			},
			Calls: func(rt runtime.Runtime) int { return rt.(*subject).below.Calls() },
		},
		Within: synctest.Test, Parallel: 4,
	}
}

func TestTheFakeBackendKeepsTheContractOfARuntime(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		below := newFake(nil)
		return over(t, configOf(t, below), below)
	}, suite())
}
