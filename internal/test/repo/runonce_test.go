package repo_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/podsapi"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/cm/podresources"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/runonce/runoncetest"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/register"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

type runner interface{ Run(context.Context) error }

// newRunners returns a value of each exported type of the module with a Run
// method, by package and type.
func newRunners(t *testing.T) map[string]runner {
	all := map[string]runner{}
	add := func(name string) func(r runner, err error) {
		return func(r runner, err error) {
			t.Helper()
			require.NoError(t, err, name)
			all[name] = r
		}
	}
	generator, err := pleg.New(pleg.Config{Runtime: new(runtimetest.Runtime)})
	add("pleg: Generator")(generator, err)
	recorder, err := record.New(record.Config{Dir: t.TempDir()})
	add("record: Recorder")(recorder, err)
	workers := func() *podworker.Workers {
		w, err := podworker.New(podworker.Config{Handler: noHandler{}, StatusCache: generator})
		require.NoError(t, err)
		return w
	}
	machine, err := topology.NewMachine([]topology.CPU{{ID: 0}}, []topology.Node{{ID: 0}}, cpuset.New())
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	add("podworker: Workers")(workers(), nil)
	statuses, err := status.New(status.Config{Sink: new(status.MemorySink)})
	add("status: Manager")(statuses, err)
	probes, err := prober.New(prober.Config{})
	add("prober: Manager")(probes, err)
	whole, err := agent.New(agent.Config{
		Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{"memory": new(podsource.Memory)}, Sink: new(status.MemorySink),
	})
	add("agent: Agent")(whole, err)
	merge, err := podsource.NewMerge(podsource.MergeConfig{Sources: map[string]podsource.PodSource{"memory": new(podsource.Memory)}, Sink: noSink{}})
	add("podsource: Merge")(merge, err)
	images, err := imagegc.New(imagegc.Config{Store: noImages{}, Policy: imagegc.Policy{HighPercent: new(int32(100))}})
	add("imagegc: Manager")(images, err)
	granted, err := allocation.Open(allocation.Config{})
	add("allocation: Manager")(granted, err)
	pressure, err := eviction.New(eviction.Config{
		Summary: func(context.Context, bool) (*statsapi.Summary, error) { return nil, errors.New("not measured") },
		Pods:    noPods{},
	})
	add("eviction: Manager")(pressure, err)
	leaving, err := shutdown.New(shutdown.Config{Pods: noPods{}})
	add("shutdown: Manager")(leaving, err)
	objects, err := objectdir.New(objectdir.Config{Dir: t.TempDir()})
	add("objectdir: Dir")(objects, err)
	plugins, err := register.New(register.Config{Dir: t.TempDir(), Handlers: map[string]register.Handler{"CSIPlugin": noPlugins{}}})
	add("register: Watcher")(plugins, err)
	storage, err := csi.New(csi.Config{RootDir: t.TempDir(), NodeName: "n", Mounter: volume.NewMounter(false)})
	add("csi: Plugin")(storage, err)
	groups, err := cm.New(cm.Config{Tree: cgroups.NewTree(cgroups.Facts{Version: 2})})
	add("cm: Manager")(groups, err)
	cpus, err := cpu.Open(cpu.Config{Machine: machine})
	add("cpu: Manager")(cpus, err)
	devices, err := device.Open(device.Config{Dir: t.TempDir()})
	add("device: Manager")(devices, err)
	drivers, err := registry.New(registry.Config{})
	add("registry: Registry")(drivers, err)
	claims, err := dra.New(dra.Config{Claims: noClaims{}, Plugins: drivers, Store: new(state.Memory)})
	add("dra: Manager")(claims, err)
	kills, err := oom.New(oom.Config{Cgroups: noPods{}})
	add("oom: Watcher")(kills, err)
	resources, err := podresources.New(podresources.Config{Socket: filepath.Join(t.TempDir(), "socket"), Pods: noPods{}})
	add("podresources: Server")(resources, err)
	nodePods, err := podsapi.New(podsapi.Config{Socket: filepath.Join(t.TempDir(), "socket"), Pods: noPods{}})
	add("podsapi: Server")(nodePods, err)
	collector, err := stats.New(stats.Config{NodeName: "node"})
	add("stats: Collector")(collector, err)
	logs, err := logrotate.New(logrotate.Config{Runtime: noLogs{}})
	add("logrotate: Rotator")(logs, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: new(fakecri.Runtime)})
	add("serve: Server")(server, err)
	node, err := sim.NewNode(sim.NodeConfig{})
	add("sim: Node")(node, err)
	return all
}

func TestASecondRunIsAnError(t *testing.T) {
	for name, r := range newRunners(t) {
		runoncetest.Check(t, name, r.Run)
	}
}

// Sources of pods are left out: Merge runs one again after an error.
func TestEachRunIsTestedForASecondCall(t *testing.T) {
	elsewhere := map[string]string{
		"cluster: Cluster": "sim/cluster's own tests: its Run also returns a report",
		"volume: Manager":  "volume's own tests",
		"podworker: Loop":  "podworker's own tests: only package agent may construct one",
	}
	tested := newRunners(t)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch path {
			case "kube", "examples", "test", "tools", "internal", "hack", "docs", ".git":
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Run" || f.Type.Params.NumFields() != 1 {
				continue
			}
			receiver, ok := f.Recv.List[0].Type.(*ast.StarExpr)
			if !ok || !ast.IsExported(receiver.X.(*ast.Ident).Name) {
				continue
			}
			name := file.Name.Name + ": " + receiver.X.(*ast.Ident).Name
			assert.True(t, tested[name] != nil || elsewhere[name] != "", "%s: %s.Run is not in newRunners", path, name)
		}
		return nil
	})
	require.NoError(t, err)
}

type noHandler struct{}

func (noHandler) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	return podworker.SyncResult{}, nil
}
func (noHandler) Terminate(context.Context, podworker.SyncRequest) error { return nil }
func (noHandler) Cleanup(context.Context, podworker.SyncRequest) error   { return nil }

type noSink struct{}

func (noSink) AddPods([]*v1.Pod)       {}
func (noSink) UpdatePods([]*v1.Pod)    {}
func (noSink) RemovePods([]*v1.Pod)    {}
func (noSink) ReconcilePods([]*v1.Pod) {}
func (noSink) SourceSynced(string)     {}

type noImages struct{}

func (noImages) Images(context.Context) ([]runtime.Image, error)       { return nil, nil }
func (noImages) ImageUses(context.Context) ([]runtime.ImageUse, error) { return nil, nil }
func (noImages) RemoveImage(context.Context, runtime.Image) error      { return nil }

type noPlugins struct{}

func (noPlugins) Register(context.Context, string, string, []string) error { return nil }
func (noPlugins) Deregister(context.Context, string)                       {}

type noClaims struct{}

func (noClaims) GetClaim(context.Context, string, string) (*resourceapi.ResourceClaim, error) {
	return nil, errors.New("there are no claims")
}

type noLogs struct{}

func (noLogs) Pods(context.Context) ([]*runtime.Pod, error)    { return nil, nil }
func (noLogs) LogPath(context.Context, string) (string, error) { return "", nil }
func (noLogs) ReopenLog(context.Context, string) error         { return nil }

// noPods implements podsapi.Pods, podresources.Pods, eviction.Pods, shutdown.Pods and oom.Cgroups.
type noPods struct{}

func (noPods) Kill(context.Context, shutdown.Kill) error    { return nil }
func (noPods) AwaitCleaned(context.Context, *v1.Pod) error  { return nil }
func (noPods) OOMKills() (map[string]uint64, error)         { return nil, nil }
func (noPods) Running() []*v1.Pod                           { return nil }
func (noPods) Evict(context.Context, eviction.Victim) error { return nil }
func (noPods) Cleaned(types.UID) bool                       { return true }
func (noPods) Desired() []*v1.Pod                           { return nil }
func (noPods) Pod(types.UID) (pod, mirror *v1.Pod)          { return nil, nil }
func (noPods) Status(types.UID) (v1.PodStatus, bool)        { return v1.PodStatus{}, false }
func (noPods) Synced() bool                                 { return true }
