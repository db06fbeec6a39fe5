//go:build unix

package compare

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/criproxy"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// NodeName is the name of both nodes.
const NodeName = "compare"

// An Access is what a node's control plane is used with: kubeconfig files of an administrator and of the node.
type Access struct{ Admin, Node string }

// AccessIn returns the files for a kind of node, one of Kinds, in the directory of --control-planes.
func AccessIn(dir, kind string) Access {
	return Access{filepath.Join(dir, kind+"-admin.kubeconfig"), filepath.Join(dir, kind+"-node.kubeconfig")}
}

// A world is one node with a containerd, a proxy in front of it, and an API server.
type world struct {
	*labenv.Env

	kind    string
	daemon  *lab.Daemon
	proxy   *criproxy.Proxy
	access  Access
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
	if o.controlPlanes != "" {
		w.access = AccessIn(o.controlPlanes, kind)
	} else {
		control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
		w.access = Access{control.Kubeconfig, control.NodeKubeconfig(NodeName)}
	}
	var config *rest.Config
	w.api, config = w.Client(w.access.Admin)
	w.objects, err = dynamic.NewForConfig(config)
	w.Must("create a client", err)
	w.proxy, err = criproxy.New(criproxy.Config{Listen: w.Path("cri.sock"), Upstream: w.daemon.Endpoint, Responses: responseRecorded})
	w.Must("start a proxy", err)
	t.Cleanup(func() { w.Must("stop the proxy", w.proxy.Close()) })
	if lab.CgroupDriver() == cgroupfs {
		w.MakeCgroup()
	}
	w.Must("write resolv.conf", os.WriteFile(w.Path("resolv.conf"), []byte("nameserver 192.0.2.53\nsearch example.test\noptions timeout:1\n"), 0o644))
	w.Must("write a configuration", os.WriteFile(w.Path("config.json"), w.config(o.config), 0o644))
	w.start(o)
	return w
}

const cgroupfs = "cgroupfs"

// group returns the name of the node's cgroup. With the driver systemd it is the cgroup
// of all pods: only the tests' own machine has this driver.
func (w *world) group() string {
	if lab.CgroupDriver() == cgroupfs {
		return strings.TrimPrefix(w.Cgroup(), "/")
	}
	return "kubepods.slice"
}

// config returns the KubeletConfiguration, which is the same for both kinds but for paths
// and ports, with extra fields. It does not evict pods, and does not change rules of iptables.
func (w *world) config(extra map[string]any) []byte {
	ports, err := labenv.FreePorts(1)
	w.Must("find a port", err)
	config := map[string]any{
		"port": ports[0], "healthzPort": 0, "containerRuntimeEndpoint": "unix://" + w.Path("cri.sock"), "cgroupDriver": lab.CgroupDriver(),
		"staticPodPath": w.Path("manifests"), "fileCheckFrequency": "1s", "podLogsDir": w.Path("logs"),
		"clusterDNS": []string{"10.96.0.10"}, "clusterDomain": "cluster.local", "resolvConf": w.Path("resolv.conf"),
		"nodeStatusReportFrequency": "10s", "nodeStatusUpdateFrequency": "10s",
		"runtimeRequestTimeout": lab.Limit(2 * time.Minute).String(),
	}
	if lab.CgroupDriver() == cgroupfs {
		config["cgroupRoot"] = w.Cgroup()
	}
	maps.Copy(config, extra)
	data, err := labenv.KubeletConfig(config)
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
		"--config=" + w.Path("config.json"), "--kubeconfig=" + w.access.Node, "--root-dir=" + w.Path("root"),
		"--cert-dir=" + w.Path("pki"), "--hostname-override=" + NodeName, "--node-ip=" + address, "--v=4",
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
