//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/kubelet"
)

// serviceEnv is an environment variable with which the test program is a VM service at that socket
// until it is killed or its input ends: one that outlives a node.
const serviceEnv = "VIRTUALNODE_SERVICE"

func TestMain(m *testing.M) {
	socket := os.Getenv(serviceEnv)
	if socket == "" {
		os.Exit(m.Run())
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	if err := serve(ctx, socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// vmService is a VM service whose machines are processes of this host, with /bin/sh for any image.
type vmService struct {
	mu       sync.Mutex // guards machines
	machines map[string]*vm
}

// A vm is a machine and its process.
type vm struct {
	machine
	cmd     *exec.Cmd // nil: it was not started
	stopped chan struct{}
}

// serve serves a service at a socket until ctx is done, and kills its machines then.
func serve(ctx context.Context, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := &vmService{machines: map[string]*vm{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /service", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, kubelet.NodeInfo{Version: "7.1", Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi")}}, nil)
	})
	mux.HandleFunc("GET /machines", s.list)
	mux.HandleFunc("POST /machines", s.create)
	mux.HandleFunc("GET /machines/{id}", s.on(func(vm *vm, _ *http.Request) (any, error) { return vm.machine, nil }))
	mux.HandleFunc("POST /machines/{id}/start", s.on(s.start))
	mux.HandleFunc("POST /machines/{id}/stop", s.on(s.stop))
	mux.HandleFunc("DELETE /machines/{id}", s.delete)
	mux.HandleFunc("POST /machines/{id}/exec", s.exec)
	server := &http.Server{Handler: mux}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, vm := range s.machines {
		if vm.Status == "running" {
			_ = syscall.Kill(-vm.cmd.Process.Pid, syscall.SIGKILL)
			s.mu.Unlock()
			<-vm.stopped
			s.mu.Lock()
		}
	}
	return nil
}

func respond(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, errUnknown):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errExists):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		_ = json.NewEncoder(w).Encode(v)
	}
}

// on returns a handler of one machine.
func (s *vmService) on(f func(*vm, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		vm := s.machines[r.PathValue("id")]
		if vm == nil {
			respond(w, nil, errUnknown)
			return
		}
		v, err := f(vm, r)
		respond(w, v, err)
	}
}

func (s *vmService) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []machine{}
	for _, vm := range s.machines {
		if vm.Status == "running" {
			vm.CPUTime, vm.MemoryUsed = time.Since(vm.Started)/100, 64<<20
		}
		all = append(all, vm.machine)
	}
	respond(w, all, nil)
}

func (s *vmService) create(w http.ResponseWriter, r *http.Request) {
	var m machine
	err := json.NewDecoder(r.Body).Decode(&m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machines[m.Name] != nil {
		err = errExists
	}
	if err == nil {
		m.Status = "created"
		s.machines[m.Name] = &vm{machine: m, stopped: make(chan struct{})}
	}
	respond(w, nil, err)
}

// start starts the process of a machine, which appends to the console in the CRI's log format.
func (s *vmService) start(vm *vm, _ *http.Request) (any, error) {
	if vm.Status != "created" {
		return nil, fmt.Errorf("machine %s is %s", vm.Name, vm.Status)
	}
	if err := os.MkdirAll(filepath.Dir(vm.Console), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(vm.Console, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	if len(vm.Command) == 0 {
		vm.Command = []string{"/bin/sh", "-c", "sleep 1000000"}
	}
	vm.cmd = exec.Command(vm.Command[0], vm.Command[1:]...)
	vm.cmd.Env = append(vm.Env, "PATH="+os.Getenv("PATH"))
	vm.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &console{file: file}
	vm.cmd.Stdout, vm.cmd.Stderr = out, out
	if err := vm.cmd.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	vm.Status, vm.Started, vm.IP = "running", time.Now(), "127.0.0.1"
	go func() {
		_ = vm.cmd.Wait() // the exit code has it
		_ = file.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		vm.Status, vm.Stopped, vm.ExitCode = "stopped", time.Now(), int32(vm.cmd.ProcessState.ExitCode())
		if status, ok := vm.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			vm.ExitCode = 128 + int32(status.Signal())
		}
		close(vm.stopped)
	}()
	return nil, nil
}

// A console writes lines in the CRI's log format.
type console struct {
	file *os.File
	line []byte
}

func (c *console) Write(p []byte) (int, error) {
	c.line = append(c.line, p...)
	for {
		line, rest, ok := strings.Cut(string(c.line), "\n")
		if !ok {
			return len(p), nil
		}
		c.line = []byte(rest)
		if _, err := fmt.Fprintf(c.file, "%s stdout F %s\n", time.Now().Format(time.RFC3339Nano), line); err != nil {
			return 0, err
		}
	}
}

// stop requests the end of a machine, without a wait.
func (s *vmService) stop(vm *vm, r *http.Request) (any, error) {
	switch {
	case vm.Status == "created":
		vm.Status, vm.Stopped, vm.ExitCode = "stopped", time.Now(), 137
		close(vm.stopped)
	case vm.Status == "stopped":
	case r.URL.Query().Get("force") == "true":
		return nil, syscall.Kill(-vm.cmd.Process.Pid, syscall.SIGKILL)
	default:
		return nil, syscall.Kill(-vm.cmd.Process.Pid, syscall.SIGTERM)
	}
	return nil, nil
}

func (s *vmService) delete(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	vm := s.machines[r.PathValue("id")]
	if vm != nil && vm.Status == "running" {
		respond(w, nil, fmt.Errorf("machine %s runs", vm.Name))
		return
	}
	delete(s.machines, r.PathValue("id"))
	respond(w, nil, nil)
}

// exec runs a command with the input of the request, and responds with frames.
func (s *vmService) exec(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	vm := s.machines[r.PathValue("id")]
	ok := vm != nil && vm.Status == "running"
	s.mu.Unlock()
	args := r.URL.Query()["command"]
	if !ok || len(args) == 0 {
		respond(w, nil, errUnknown)
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex()
	cmd := exec.CommandContext(r.Context(), args[0], args[1:]...)
	cmd.Env = append(vm.Env, "PATH="+os.Getenv("PATH"))
	out := &frames{to: json.NewEncoder(w), flush: w.(http.Flusher).Flush}
	cmd.Stdout, cmd.Stderr = frameWriter(func(p []byte) frame { return frame{Stdout: p, More: true} }, out), frameWriter(func(p []byte) frame { return frame{Stderr: p, More: true} }, out)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = out.send(frame{Stderr: []byte(err.Error() + "\n"), Exit: 126})
		return
	}
	go func() { _, _ = io.Copy(stdin, r.Body); _ = stdin.Close() }()
	_ = cmd.Wait() // the exit code has it
	_ = out.send(frame{Exit: int32(cmd.ProcessState.ExitCode())})
}

// frames sends frames of two streams.
type frames struct {
	mu    sync.Mutex
	to    *json.Encoder
	flush func()
}

func (f *frames) send(v frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.flush()
	return f.to.Encode(v)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func frameWriter(of func([]byte) frame, to *frames) io.Writer {
	return writerFunc(func(p []byte) (int, error) { return len(p), to.send(of(p)) })
}
