//go:build unix

package compare

import (
	"encoding/json"
	"errors"
	"k8s.io/client-go/rest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/criproxy"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

const nodeName = "compare"

// A world is one node with a containerd, a proxy in front of it, and an API server.
type world struct {
	*labenv.Env

	kind    string
	daemon  *lab.Daemon
	proxy   *criproxy.Proxy
	control *lab.ControlPlane
	api     kubernetes.Interface // as cluster administrator
	objects dynamic.Interface    // the same
	node    *labenv.Process
}

// mirrored is the registry that the corpus pulls from.
const mirrored = "images.test"

func newWorld(t testing.TB, kind string, o options) *world {
	w := &world{Env: labenv.New(t, "", "containerd", "kubernetes"), kind: kind}
	for _, dir := range []string{"manifests", "host"} {
		w.Must("make a directory", os.Mkdir(w.Path(dir), 0o755))
	}
	registry := lab.NewRegistry(t)
	image, err := lab.BusyboxImage()
	w.Must("build an image", err)
	// Not the content of Busybox: the kubelet verifies images that it has pulled by their IDs.
	image.Files = append(image.Files, lab.File{Path: "tool", Mode: 0o644})
	registry.Push(image, "tool:1")
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Mirror: "http://" + registry.Host, MirrorHosts: []string{mirrored}})
	w.control = lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	var config *rest.Config
	w.api, config = w.Client(w.control.Kubeconfig)
	w.objects, err = dynamic.NewForConfig(config)
	w.Must("create a client", err)
	w.proxy, err = criproxy.New(criproxy.Config{Listen: w.Path("cri.sock"), Upstream: w.daemon.Endpoint, Responses: responseRecorded})
	w.Must("start a proxy", err)
	t.Cleanup(func() { w.Must("stop the proxy", w.proxy.Close()) })
	w.MakeCgroup()
	w.Must("write resolv.conf", os.WriteFile(w.Path("resolv.conf"), []byte("nameserver 192.0.2.53\nsearch example.test\noptions timeout:1\n"), 0o644))
	w.Must("write a configuration", os.WriteFile(w.Path("config.json"), w.config(), 0o644))
	w.start(o)
	return w
}

// group returns the name of the node's cgroup.
func (w *world) group() string { return strings.TrimPrefix(w.Cgroup(), "/") }

// config returns the KubeletConfiguration, which is the same for both kinds but for paths
// and ports. It does not evict pods, and does not change rules of iptables.
func (w *world) config() []byte {
	ports, err := labenv.FreePorts(1)
	w.Must("find a port", err)
	data, err := json.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": "127.0.0.1", "port": ports[0], "healthzPort": 0,
		"containerRuntimeEndpoint": "unix://" + w.Path("cri.sock"),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": w.Cgroup(), "failCgroupV1": false, "failSwapOn": false,
		"evictionHard":                map[string]string{"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"staticPodPath": w.Path("manifests"), "fileCheckFrequency": "1s", "podLogsDir": w.Path("logs"),
		"clusterDNS": []string{"10.96.0.10"}, "clusterDomain": "cluster.local", "resolvConf": w.Path("resolv.conf"),
		"authentication":            map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":             map[string]any{"mode": "AlwaysAllow"},
		"makeIPTablesUtilChains":    false,
		"nodeStatusReportFrequency": "10s", "nodeStatusUpdateFrequency": "10s",
	})
	w.Must("encode the configuration", err)
	return data
}

// start starts the kubelet or the agent.
func (w *world) start(o options) {
	binary := map[string]string{kindKubelet: o.kubelet, kindAgent: o.agent}[w.kind]
	if binary == "" {
		binary = w.Path("agent")
		w.Must("build the agent", labenv.Build(w.Context(), binary))
	}
	address, err := labenv.OwnAddress()
	w.Must("find an address", err)
	w.node, err = labenv.Start(binary, []string{
		"--config=" + w.Path("config.json"), "--kubeconfig=" + w.control.NodeKubeconfig(nodeName), "--root-dir=" + w.Path("root"),
		"--cert-dir=" + w.Path("pki"), "--hostname-override=" + nodeName, "--node-ip=" + address, "--v=4",
	}, w.Path("node.log"))
	w.Must("start the "+w.kind, err)
	w.Cleanup(func() {
		w.Must("stop the "+w.kind, w.node.Stop(90*time.Second))
		log, err := os.ReadFile(w.Path("node.log"))
		w.Must("keep the log", errors.Join(err, labenv.KeepLogs(o.save, map[string][]byte{w.kind + ".log": log})))
	})
}

// responseRecorded reports whether a response is needed: it contains an ID.
func responseRecorded(method string) bool {
	return method == "RunPodSandbox" || method == "CreateContainer" || strings.HasPrefix(method, "Update")
}
