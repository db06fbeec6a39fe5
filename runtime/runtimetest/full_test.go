package runtimetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A full runtime is the runtime in memory with minimal implementations of all optional
// interfaces, for the runtimes that violate their contracts.
type full struct {
	*runtimetest.Runtime
	dir string // of logs

	calls atomic.Int64 // of the runtime in memory, for lists and looks

	mu   sync.Mutex
	urls int
}

var errGone = fmt.Errorf("no such container: %w", runtime.ErrNotFound)

// find returns a container, and the UID of its pod.
func (f *full) find(ctx context.Context, id string) (*runtime.ContainerStatus, types.UID, error) {
	pods, err := f.Runtime.Pods(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			if c.ID == id {
				s, err := f.Runtime.PodStatus(ctx, p.UID)
				if err != nil {
					return nil, "", err
				}
				for i := range s.Containers {
					if s.Containers[i].ID == id {
						return &s.Containers[i], p.UID, nil
					}
				}
			}
		}
	}
	return nil, "", errGone
}

// Calls returns the number of calls of its backend, which is the runtime in memory.
func (f *full) Calls() int { return int(f.calls.Load()) }

func (f *full) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	f.calls.Add(1)
	return f.Runtime.Pods(ctx)
}

// PodStatus adds log paths and termination messages.
func (f *full) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	f.calls.Add(1)
	s, err := f.Runtime.PodStatus(ctx, uid)
	if err != nil {
		return nil, err
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		c.LogPath = f.logFile(c)
		if text, ok := strings.CutPrefix(c.Image, "reports "); ok && c.State == runtime.ContainerExited {
			c.Message = text
		}
	}
	return s, nil
}

func (f *full) logFile(c *runtime.ContainerStatus) string {
	path := filepath.Join(f.dir, strings.ReplaceAll(c.ID, "/", "_"))
	if text, ok := strings.CutPrefix(c.Image, "prints "); ok {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			if _, err := os.Stat(path + ".old"); err != nil { // it prints the text once
				_ = os.WriteFile(path, []byte("2026-01-02T03:04:05.6Z stdout F "+text+"\n"), 0o644)
			}
		}
	}
	return path
}

func (f *full) LogPath(ctx context.Context, id string) (string, error) {
	c, _, err := f.find(ctx, id)
	if err != nil {
		return "", err
	}
	return f.logFile(c), nil
}

func (f *full) ReopenLog(ctx context.Context, id string) error {
	path, err := f.LogPath(ctx, id)
	if err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// StreamExec implements echo and a command that prints the sizes of its terminal.
func (f *full) StreamExec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	if cmd[0] == "echo" {
		if _, _, err := f.find(ctx, id); err != nil {
			return 0, err
		}
		_, err := io.Copy(s.Stdout, s.Stdin)
		return 0, err
	}
	for cmd[0] == "size" {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case size := <-s.Resize:
			fmt.Fprintln(s.Stdout, size.Height, size.Width)
		}
	}
	return f.Runtime.StreamExec(ctx, id, cmd, s)
}

// Attach repeats line by line, as the main process would.
func (f *full) Attach(ctx context.Context, id string, s runtime.Streams) error {
	lines := make(chan string, 16)
	go func() { // Stdin is closed by the caller
		defer close(lines)
		buf := make([]byte, 64)
		for {
			n, err := s.Stdin.Read(buf)
			if err != nil {
				return
			}
			lines <- string(buf[:n])
		}
	}()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			if _, err := io.WriteString(s.Stdout, line); err != nil {
				return err
			}
		case <-poll.C:
		}
		if c, _, err := f.find(ctx, id); err != nil || c.State == runtime.ContainerExited {
			return err
		}
	}
}

// PortForward writes a greeting on the port that the container's image names.
func (f *full) PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	s, err := f.Runtime.PodStatus(ctx, uid)
	if err != nil {
		return err
	}
	if s.Pod() == nil {
		return fmt.Errorf("no such pod: %w", runtime.ErrNotFound)
	}
	for _, c := range s.Containers {
		if c.Image == fmt.Sprint("greets ", port) {
			_, err := io.WriteString(conn, "hello\n")
			return err
		}
	}
	return errors.New("connection refused")
}

func (f *full) url() (*url.URL, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls++
	return url.Parse(fmt.Sprint("http://127.0.0.1:1/", f.urls))
}

func (f *full) ExecURL(ctx context.Context, id string, _ []string, _ runtime.StreamOptions) (*url.URL, error) {
	if _, _, err := f.find(ctx, id); err != nil {
		return nil, err
	}
	return f.url()
}

func (f *full) AttachURL(ctx context.Context, id string, o runtime.StreamOptions) (*url.URL, error) {
	return f.ExecURL(ctx, id, nil, o)
}

func (f *full) PortForwardURL(ctx context.Context, uid types.UID, _ []int32) (*url.URL, error) {
	if s, err := f.Runtime.PodStatus(ctx, uid); err != nil || s.Pod() == nil {
		return nil, errors.Join(err, runtime.ErrNotFound)
	}
	return f.url()
}

func statsOf(id, name string) runtime.ContainerStats {
	now := time.Now()
	return runtime.ContainerStats{
		ID: id, Name: name,
		CPU:    &runtime.CPUUsage{At: now, CoreNanos: new(uint64(now.UnixNano()))},
		Memory: &runtime.MemoryUsage{At: now, WorkingSet: new(uint64(1 << 20))},
	}
}

func (f *full) ContainerStats(ctx context.Context, id string) (*runtime.ContainerStats, error) {
	c, _, err := f.find(ctx, id)
	if err != nil {
		return nil, err
	}
	s := statsOf(id, c.Name)
	return &s, nil
}

func (f *full) PodStats(ctx context.Context) ([]runtime.PodStats, error) {
	pods, err := f.Runtime.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var out []runtime.PodStats
	for _, p := range pods {
		s := runtime.PodStats{UID: p.UID, Name: p.Name, Namespace: p.Namespace}
		for _, c := range p.Containers {
			if c.State == runtime.ContainerRunning {
				s.Containers = append(s.Containers, statsOf(c.ID, c.Name))
			}
		}
		if len(s.Containers) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

func (f *full) ImageFS(context.Context) (images, containers []runtime.FSUsage, err error) {
	fs := []runtime.FSUsage{{At: time.Now(), Mountpoint: "/images", Bytes: new(uint64(1))}}
	return fs, fs, nil
}

func (f *full) Features(context.Context) (runtime.Features, error) {
	return runtime.Features{Handlers: map[string]runtime.HandlerFeatures{"": {}}}, nil
}

func (f *full) CgroupDriver(context.Context) (runtime.CgroupDriver, error) {
	return runtime.CgroupDriverCgroupfs, nil
}

func (f *full) Checkpoint(ctx context.Context, id, location string, _ time.Duration) error {
	if _, _, err := f.find(ctx, id); err != nil {
		return err
	}
	if !filepath.IsAbs(location) {
		return fmt.Errorf("%q is not an absolute path", location)
	}
	return os.WriteFile(location, nil, 0o600)
}

func (f *full) CheckpointPod(ctx context.Context, pod *v1.Pod, location string) error {
	st, err := f.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(location) || len(st.Containers) == 0 {
		return fmt.Errorf("%q is not an absolute path, or pod %s has no containers", location, pod.Name)
	}
	return os.WriteFile(filepath.Join(location, "processes"), nil, 0o600)
}

func (f *full) UpdateResources(ctx context.Context, id string, _ v1.ResourceRequirements) error {
	_, _, err := f.find(ctx, id)
	return err
}
