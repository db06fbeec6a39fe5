//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

const nodeName = "compare"

// A world is one node with a containerd, a proxy in front of it, and an API server.
type world struct {
	testing.TB // for package lab; see lab.Program

	kind    string
	dir     string
	group   string // name of the node's cgroup
	daemon  *lab.Daemon
	proxy   *criproxy.Proxy
	control *lab.ControlPlane
	api     kubernetes.Interface // as cluster administrator
	objects dynamic.Interface    // the same
	ended   chan struct{}        // closed when the agent has terminated
}

// must aborts the run if err is not nil.
func (w *world) must(what string, err error) {
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// mirrored is the registry that the corpus pulls from.
const mirrored = "images.test"

func newWorld(t testing.TB, kind string, o options) *world {
	w := &world{TB: t, kind: kind, ended: make(chan struct{})}
	binary := lab.FindContainerd()
	w.must("name containerd", os.Setenv("KUBEPARTS_CONTAINERD", binary))
	lab.Need(t, "containerd", "kubernetes")
	w.dir = lab.Directory(t)
	w.group = filepath.Base(w.dir)
	for _, dir := range []string{"manifests", "host"} {
		w.must("make a directory", os.Mkdir(w.path(dir), 0o755))
	}
	registry := lab.NewRegistry(t)
	image, err := lab.BusyboxImage()
	w.must("build an image", err)
	// Not the content of Busybox: the kubelet verifies images that it has pulled by their IDs.
	image.Files = append(image.Files, lab.File{Path: "tool", Mode: 0o644})
	registry.Push(image, "tool:1")
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Binary: binary, Mirror: "http://" + registry.Host, MirrorHosts: []string{mirrored}})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	config, err := clientcmd.BuildConfigFromFlags("", w.control.Kubeconfig)
	w.must("read a kubeconfig", err)
	config.QPS = -1
	w.api, err = kubernetes.NewForConfig(config)
	w.must("create a client", err)
	w.objects, err = dynamic.NewForConfig(config)
	w.must("create a client", err)
	w.proxy, err = criproxy.New(criproxy.Config{Listen: w.path("cri.sock"), Upstream: w.daemon.Endpoint, Responses: responseRecorded})
	w.must("start a proxy", err)
	t.Cleanup(func() { w.must("stop the proxy", w.proxy.Close()) })
	w.must("make cgroups", makeCgroups(w.group))
	t.Cleanup(func() { w.must("remove cgroups", removeCgroups(w.group)) })
	w.must("write resolv.conf", os.WriteFile(w.path("resolv.conf"), []byte("nameserver 192.0.2.53\nsearch example.test\noptions timeout:1\n"), 0o644))
	w.must("write a configuration", os.WriteFile(w.path("config.json"), w.config(), 0o644))
	w.start(o)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// config returns the KubeletConfiguration, which is the same for both kinds but for paths
// and ports. It does not evict pods, and does not change rules of iptables.
func (w *world) config() []byte {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must("find a port", err)
	port := l.Addr().(*net.TCPAddr).Port
	w.must("find a port", l.Close())
	data, err := json.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "127.0.0.1", "port": port, "healthzPort": 0,
		"containerRuntimeEndpoint": "unix://" + w.path("cri.sock"),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + w.group, "failCgroupV1": false, "failSwapOn": false,
		"evictionHard":                map[string]string{"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"staticPodPath": w.path("manifests"), "fileCheckFrequency": "1s", "podLogsDir": w.path("logs"),
		"clusterDNS": []string{"10.96.0.10"}, "clusterDomain": "cluster.local", "resolvConf": w.path("resolv.conf"),
		"authentication":            map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":             map[string]any{"mode": "AlwaysAllow"},
		"makeIPTablesUtilChains":    false,
		"nodeStatusReportFrequency": "10s", "nodeStatusUpdateFrequency": "10s",
	})
	w.must("encode the configuration", err)
	return data
}

// address returns an address of the machine: a kubelet does not accept one of loopback.
func (w *world) address() string {
	addresses, err := net.InterfaceAddrs()
	w.must("list addresses", err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() && !strings.HasPrefix(ip.IP.String(), "10.231.") {
			return ip.IP.String()
		}
	}
	w.Fatalf("this machine has no address other than loopback")
	return ""
}

// start starts the kubelet or the agent.
func (w *world) start(o options) {
	binary := map[string]string{kindKubelet: o.kubelet, kindAgent: o.agent}[w.kind]
	if binary == "" {
		binary = w.path("agent")
		w.must("build the agent", cli.BuildAgent(w.Context(), binary))
	}
	log, err := os.Create(w.path("node.log"))
	w.must("create a log", err)
	defer log.Close()
	cmd := exec.Command(binary, "--config="+w.path("config.json"), "--kubeconfig="+w.control.NodeKubeconfig(nodeName),
		"--root-dir="+w.path("root"), "--cert-dir="+w.path("pki"), "--hostname-override="+nodeName, "--node-ip="+w.address(), "--v="+strconv.Itoa(4))
	cmd.Stdout, cmd.Stderr = log, log
	w.must("start the "+w.kind, cmd.Start())
	go func() {
		defer close(w.ended)
		_ = cmd.Wait() // its log has the error
	}()
	w.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have terminated
		select {
		case <-w.ended:
		case <-time.After(90 * time.Second):
			w.must("kill the "+w.kind, cmd.Process.Kill())
			<-w.ended
		}
		if o.save != "" {
			w.must("keep the log", copyFile(filepath.Join(o.save, w.kind+".log"), w.path("node.log")))
		}
	})
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// until calls check until it returns nil, the agent terminates, or the time is over.
func (w *world) until(ctx context.Context, what string, patience time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-w.ended:
			text, _ := os.ReadFile(w.path("node.log"))
			return fmt.Errorf("the %s has terminated: %s", w.kind, text[max(0, len(text)-3000):])
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// nodeReady waits until the node is ready.
func (w *world) nodeReady(ctx context.Context) error {
	return w.until(ctx, "the node is not ready", 3*time.Minute, func() error {
		node, err := w.api.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
				return nil
			} else if c.Type == v1.NodeReady {
				return fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
		return errors.New("no condition Ready")
	})
}

// responseRecorded reports whether a response is needed: it contains an ID.
func responseRecorded(method string) bool {
	return method == "RunPodSandbox" || method == "CreateContainer" || strings.HasPrefix(method, "Update")
}
