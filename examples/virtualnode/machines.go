package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
)

// A machine of the service is created, running or stopped. Its name is its ID.
type machine struct {
	Name, Image, Status, IP string
	Console                 string // a file, to which the service appends in the CRI's log format
	Command, Env            []string
	MilliCPU, Memory        int64 // limits; 0: none
	Metadata                map[string]string
	Started, Stopped        time.Time
	ExitCode                int32
	CPUTime                 time.Duration // since the start
	MemoryUsed              uint64
}

// A frame is a part of the output of a command. The last one has the exit code.
type frame struct {
	Stdout, Stderr []byte
	More           bool
	Exit           int32
}

var errUnknown, errExists = errors.New("no such machine"), errors.New("the name is in use")

// machines is a containers.Backend over a VM service, an Execer and a StatsProvider.
type machines struct{ *http.Client }

func newMachines(socket string) machines {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return machines{&http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// call calls a method of the service and passes the response to read.
func (m machines) call(ctx context.Context, method, path string, in io.Reader, read func(*json.Decoder) error) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://service/"+path, in)
	if err != nil {
		return err
	}
	resp, err := m.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return read(json.NewDecoder(resp.Body))
	case http.StatusNotFound:
		return errUnknown
	case http.StatusConflict:
		return errExists
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	return fmt.Errorf("VM service: %s: %s", resp.Status, text)
}

func (m machines) do(ctx context.Context, method, path string, in io.Reader) error {
	return m.call(ctx, method, path, in, func(*json.Decoder) error { return nil })
}

func get[T any](ctx context.Context, m machines, path string) (v T, err error) {
	err = m.call(ctx, http.MethodGet, path, nil, func(d *json.Decoder) error { return d.Decode(&v) })
	return v, err
}

func (m machines) Run(ctx context.Context, c containers.Container) (string, error) {
	spec := machine{
		Name: c.Key, Image: c.Image, Command: slices.Concat(c.Command, c.Args), MilliCPU: c.CPUMillis, Memory: c.Memory,
		Metadata: map[string]string{"record": c.Record}, Console: c.LogPath,
	}
	for _, e := range c.Env {
		spec.Env = append(spec.Env, e.Name+"="+e.Value)
	}
	text, _ := json.Marshal(spec) // it can be encoded
	if err := m.do(ctx, http.MethodPost, "machines", bytes.NewReader(text)); err != nil && !errors.Is(err, errExists) {
		return "", err
	}
	vm, err := get[machine](ctx, m, "machines/"+c.Key)
	if err != nil || vm.Status != "created" {
		return c.Key, err // an earlier call has started it
	}
	return c.Key, m.do(ctx, http.MethodPost, "machines/"+c.Key+"/start", nil)
}

func (m machines) Stop(ctx context.Context, id string, grace time.Duration) error {
	for deadline := time.Now().Add(grace); ; {
		vm, err := get[machine](ctx, m, "machines/"+id)
		switch {
		case errors.Is(err, errUnknown) || vm.Status == "stopped":
			return nil
		case err == nil:
			force := vm.Status == "created" || !time.Now().Before(deadline)
			err = m.do(ctx, http.MethodPost, fmt.Sprintf("machines/%s/stop?force=%t", id, force), nil)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(100*time.Millisecond, max(time.Until(deadline), 10*time.Millisecond))):
		}
	}
}

func (m machines) Remove(ctx context.Context, id string) error {
	return m.do(ctx, http.MethodDelete, "machines/"+id, nil)
}

func (m machines) List(ctx context.Context) (states []containers.State, err error) {
	all, err := get[[]machine](ctx, m, "machines")
	phases := map[string]containers.Phase{"created": containers.Queued, "running": containers.Running, "stopped": containers.Exited}
	for _, vm := range all {
		states = append(states, containers.State{
			ID: vm.Name, Key: vm.Name, Record: vm.Metadata["record"], Phase: phases[vm.Status],
			StartedAt: vm.Started, FinishedAt: vm.Stopped, ExitCode: vm.ExitCode, IP: vm.IP,
		})
	}
	return states, err
}

// Exec sends the input as the body of the request, and receives the output as frames.
func (m machines) Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (code int32, err error) {
	path := "machines/" + id + "/exec?" + url.Values{"command": cmd}.Encode()
	return code, m.call(ctx, http.MethodPost, path, s.Stdin, func(d *json.Decoder) error {
		for {
			var f frame
			if err := d.Decode(&f); err != nil {
				return fmt.Errorf("output of the command: %w", err)
			}
			_, outErr := s.Stdout.Write(f.Stdout)
			_, errErr := s.Stderr.Write(f.Stderr)
			if code = f.Exit; !f.More || outErr != nil || errErr != nil {
				return errors.Join(outErr, errErr)
			}
		}
	})
}

func (m machines) Stats(ctx context.Context) (map[string]containers.Stats, error) {
	all, err := get[[]machine](ctx, m, "machines")
	used := map[string]containers.Stats{}
	for _, vm := range all {
		if vm.Status == "running" {
			used[vm.Name] = containers.Stats{CPU: vm.CPUTime, Memory: vm.MemoryUsed}
		}
	}
	return used, err
}

// NodeInfo implements kubelet.NodeReporter: the service describes itself as one.
func (m machines) NodeInfo(ctx context.Context) (kubelet.NodeInfo, error) {
	return get[kubelet.NodeInfo](ctx, m, "service")
}
