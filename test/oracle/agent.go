package oracle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// An agent is a kubelet, as a process that is killed and started again.
type agent struct {
	dir      string
	command  []string
	recorder *recorder

	mu     sync.Mutex
	number int
	cmd    *exec.Cmd // nil: it does not run
	ended  bool      // it is not started any more
	exited string    // how it has exited by itself; empty: it has not
}

// newAgent prepares a kubelet whose files are in dir.
func newAgent(binary, dir, kubeconfig, criSocket string, verbosity int, r *recorder) (*agent, error) {
	a := &agent{dir: dir, recorder: r}
	address, err := labenv.OwnAddress()
	if err != nil {
		return nil, err
	}
	config, err := kubeletConfig(dir, criSocket)
	if err != nil {
		return nil, err
	}
	a.command = []string{binary, "--config=" + a.path("config.json"), "--kubeconfig=" + kubeconfig, "--root-dir=" + a.path("root"),
		"--cert-dir=" + a.path("pki"), "--hostname-override=" + nodeName, "--node-ip=" + address, fmt.Sprintf("--v=%d", verbosity)}
	return a, errors.Join(
		os.MkdirAll(a.path("manifests"), 0o755),
		os.WriteFile(a.path("resolv.conf"), []byte("nameserver 192.0.2.53\n"), 0o644),
		os.WriteFile(a.path("config.json"), config, 0o644),
	)
}

func (a *agent) path(name string) string { return filepath.Join(a.dir, name) }

// kubeletConfig returns the KubeletConfiguration. A runtime that executes nothing has no cgroups of pods.
func kubeletConfig(dir, criSocket string) ([]byte, error) {
	path := func(name string) string { return filepath.Join(dir, name) }
	return labenv.KubeletConfig(map[string]any{
		"port": 10250, "healthzPort": 0, "containerRuntimeEndpoint": "unix://" + criSocket,
		"cgroupsPerQOS": false, "enforceNodeAllocatable": []string{},
		"staticPodPath": path("manifests"), "podLogsDir": path("logs"), "resolvConf": path("resolv.conf"),
		"maxPods": 250, "registryPullQPS": 0, "serializeImagePulls": false,
		"kubeAPIQPS": 200, "kubeAPIBurst": 400, "eventRecordQPS": 0,
	})
}

// restartDelay is the time after which a kubelet that has exited by itself is started again.
const restartDelay = 2 * time.Second

// start starts the kubelet unless it runs.
func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cmd != nil || a.ended {
		return nil
	}
	log, err := os.OpenFile(a.path("kubelet.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(a.command[0], a.command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	a.cmd = cmd
	a.number++
	number := a.number
	a.recorder.add(Record{Agent: &Agent{number, "started"}})
	go func() {
		err := cmd.Wait()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.cmd == cmd { // it was not killed
			a.cmd, a.exited = nil, fmt.Sprintf("it has exited: %v", err)
			a.recorder.add(Record{Agent: &Agent{number, "exited"}})
			time.AfterFunc(restartDelay, func() { _ = a.start() }) // as systemd does; the record shows whether it has started
		}
	}()
	return nil
}

// kill kills the kubelet if it runs.
func (a *agent) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cmd == nil {
		return
	}
	_ = a.cmd.Process.Kill() // it may have exited
	a.cmd = nil
	a.recorder.add(Record{Agent: &Agent{a.number, "killed"}})
}

// end kills the kubelet, and does not start it again.
func (a *agent) end() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.kill()
}

// failure returns how the kubelet has exited by itself; empty: it has not.
func (a *agent) failure() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.exited
}

// log returns the last bytes of its log.
func (a *agent) log(limit int) string {
	text, err := os.ReadFile(a.path("kubelet.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-limit):])
}
