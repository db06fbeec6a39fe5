package cri_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// onContainerdRunning returns the engine over a containerd on which the pod runs.
func onContainerdRunning(t *testing.T, containers ...v1.Container) (*runtimeUnderTest, *v1.Pod) {
	rt, _, _, _ := onContainerd(t)
	pod := podOf(containers...)
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	st := drive(t, rt, pod, nil, func(st *runtime.PodStatus) bool {
		for i := range containers {
			if c := st.Container(containers[i].Name); c == nil || c.State != runtime.ContainerRunning {
				return false
			}
		}
		return true
	})
	return &runtimeUnderTest{rt, st}, pod
}

// allPowers are the optional interfaces that these tests use.
type allPowers interface {
	runtime.Execer
	runtime.StreamExecer
	runtime.Attacher
	runtime.PortForwarder
	runtime.LogReader
	runtime.LogRotator
	runtime.StatsProvider
	runtime.ImageFSReporter
	runtime.FeatureReporter
	runtime.CgroupDriverReporter
	runtime.ResourceUpdater
	runtime.Checkpointer
}

type runtimeUnderTest struct {
	allPowers
	status *runtime.PodStatus
}

func (r *runtimeUnderTest) id(name string) string { return r.status.Container(name).ID }

// output collects the output of a session.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// has waits until a line begins with prefix.
func (o *output) has(t *testing.T, prefix string) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !strings.Contains("\n"+o.String(), "\n"+prefix); <-time.After(10 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "no %q in %q", prefix, o.String())
	}
}

func TestIntegrationExecAttachPortForwardOnContainerd(t *testing.T) {
	plain := script("plain", "while true; do sleep 0.1; done")
	echo := script("echo", `mkdir /tmp; cd /tmp; while read line; do echo "read $line"; done; echo end of input; while true; do sleep 0.1; done`)
	echo.Stdin = true
	serve := script("serve", `while true; do echo served | nc -l -p 8080; done`)
	rt, pod := onContainerdRunning(t, plain, echo, serve)

	t.Run("exec", func(t *testing.T) {
		var out, errOut bytes.Buffer
		big := strings.Repeat("0123456789abcdef", 1<<14) // 256 KiB
		code, err := rt.StreamExec(t.Context(), rt.id("plain"), []string{"sh", "-c", "cat; echo oops >&2; exit 7"}, runtime.Streams{
			Stdin: strings.NewReader(big), Stdout: &out, Stderr: &errOut,
		})
		require.NoError(t, err)
		assert.EqualValues(t, 7, code)
		assert.True(t, big == out.String(), "%d bytes of %d came back", out.Len(), len(big))
		assert.Equal(t, "oops\n", errOut.String())
	})
	t.Run("exec of a missing command or container", func(t *testing.T) {
		code, err := rt.StreamExec(t.Context(), rt.id("plain"), []string{"/not/there"}, runtime.Streams{Stdout: io.Discard})
		assert.True(t, err != nil || code != 0)
		_, err = rt.StreamExec(t.Context(), "containerd://unknown", []string{"true"}, runtime.Streams{Stdout: io.Discard})
		require.ErrorIs(t, err, runtime.ErrNotFound)
	})
	t.Run("exec in a terminal", func(t *testing.T) {
		input, typing := io.Pipe()
		defer typing.Close()
		var out output
		resize := make(chan runtime.TerminalSize, 1)
		done := make(chan error, 1)
		var code int32
		go func() {
			var err error
			code, err = rt.StreamExec(t.Context(), rt.id("plain"), []string{"sh"}, runtime.Streams{Stdin: input, Stdout: &out, TTY: true, Resize: resize})
			done <- err
		}()
		_, err := io.WriteString(typing, "test -t 0 && echo a ter''minal\n")
		require.NoError(t, err)
		out.has(t, "a terminal")
		resize <- runtime.TerminalSize{Width: 99, Height: 33}
		_, err = io.WriteString(typing, "until stty size | grep '33 99'; do sleep 0.1; done; exit 5\n")
		require.NoError(t, err)
		require.NoError(t, <-done)
		assert.EqualValues(t, 5, code)
		assert.Contains(t, out.String(), "\n33 99")
	})
	t.Run("exec ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begun := time.Now()
		_, err := rt.StreamExec(ctx, rt.id("plain"), []string{"sleep", "1000"}, runtime.Streams{Stdout: io.Discard})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, time.Since(begun), 90*time.Second)
	})
	t.Run("a command that times out", func(t *testing.T) { // rt-149
		_, err := rt.Exec(t.Context(), rt.id("plain"), []string{"sleep", "1000"}, time.Second)
		require.ErrorContains(t, err, "command timed out")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("attach", func(t *testing.T) {
		input, typing := io.Pipe()
		defer typing.Close()
		var out output
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- rt.Attach(ctx, rt.id("echo"), runtime.Streams{Stdin: input, Stdout: &out, Stderr: &out})
		}()
		_, err := io.WriteString(typing, "me\n")
		require.NoError(t, err)
		out.has(t, "read me")
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		path, err := rt.LogPath(t.Context(), rt.id("echo"))
		require.NoError(t, err)
		assert.Contains(t, readFile(t, path), "read me")
	})
	t.Run("port-forward", func(t *testing.T) {
		var got []byte
		for end := time.Now().Add(90 * time.Second); len(got) == 0 && time.Now().Before(end); { // until nc listens
			ours, theirs := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- rt.PortForward(t.Context(), pod.UID, 8080, theirs) }()
			got, _ = io.ReadAll(ours)
			<-done
		}
		assert.Equal(t, "served\n", string(got))
		_, theirs := net.Pipe()
		require.Error(t, rt.PortForward(t.Context(), pod.UID, 9, theirs), "no process listens on that port")
		_, theirs = net.Pipe()
		require.ErrorIs(t, rt.PortForward(t.Context(), "another", 80, theirs), runtime.ErrNotFound)
	})
}

func TestIntegrationOptionalInterfacesOnContainerd(t *testing.T) {
	rt, pod := onContainerdRunning(t, script("web", "while true; do echo line; sleep 0.1; done"))

	t.Run("stats", func(t *testing.T) {
		var s *runtime.ContainerStats
		var err error
		for end := time.Now().Add(90 * time.Second); ; <-time.After(100 * time.Millisecond) { // they are collected now and then
			s, err = rt.ContainerStats(t.Context(), rt.id("web"))
			if err == nil && s.CPU != nil && s.CPU.CoreNanos != nil && *s.CPU.CoreNanos > 0 && s.Memory != nil && s.Memory.WorkingSet != nil {
				break
			}
			require.True(t, time.Now().Before(end), "%+v %v", s, err)
		}
		assert.Equal(t, rt.id("web"), s.ID)
		assert.Equal(t, "web", s.Name)
		_, err = rt.ContainerStats(t.Context(), "containerd://unknown")
		require.Error(t, err)
		pods, err := rt.PodStats(t.Context())
		require.NoError(t, err)
		require.Len(t, pods, 1)
		assert.Equal(t, pod.UID, pods[0].UID)
		require.Len(t, pods[0].Containers, 1, "also without stats of pods: there is no CgroupParent here")
		assert.Equal(t, rt.id("web"), pods[0].Containers[0].ID)
		images, _, err := rt.ImageFS(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, images)
		assert.NotEmpty(t, images[0].Mountpoint)
	})
	t.Run("features and cgroup driver", func(t *testing.T) {
		f, err := rt.Features(t.Context())
		require.NoError(t, err)
		driver, err := rt.CgroupDriver(t.Context())
		require.NoError(t, err)
		if strings.Contains(os.Getenv("KUBEPARTS_CONTAINERD"), "v2.") {
			assert.Contains(t, f.Handlers, "")
			assert.NotEqual(t, "", driver)
		}
		t.Logf("%+v, cgroup driver %q", f, driver)
	})
	t.Run("a log is reopened", func(t *testing.T) {
		path, err := rt.LogPath(t.Context(), rt.id("web"))
		require.NoError(t, err)
		require.NoError(t, os.Rename(path, path+".1"))
		require.NoError(t, rt.ReopenLog(t.Context(), rt.id("web")))
		for end := time.Now().Add(90 * time.Second); ; <-time.After(20 * time.Millisecond) {
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), " stdout F line\n") {
				break
			}
			require.True(t, time.Now().Before(end), "%v", err)
		}
	})
	t.Run("resources are updated", func(t *testing.T) {
		require.NoError(t, rt.UpdateResources(t.Context(), rt.id("web"), v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("64Mi")},
		}))
	})
	t.Run("a checkpoint is made or unsupported", func(t *testing.T) {
		archive := t.TempDir() + "/checkpoint.tar"
		err := rt.Checkpoint(t.Context(), rt.id("web"), archive, time.Minute)
		if err == nil {
			assert.FileExists(t, archive)
			return
		}
		t.Logf("not made (criu is needed): %v", err)
		if errors.Is(err, runtime.ErrUnsupported) {
			assert.NoFileExists(t, archive)
		}
	})
}
