package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/test/adjusttest"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/volume"
)

// optional are the optional interfaces of the parts.
func optional() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[runtime.Checker](), reflect.TypeFor[runtime.GarbageCollector](), reflect.TypeFor[runtime.Watcher](),
		reflect.TypeFor[runtime.Execer](), reflect.TypeFor[runtime.StreamExecer](), reflect.TypeFor[runtime.StreamServer](),
		reflect.TypeFor[runtime.Attacher](), reflect.TypeFor[runtime.PortForwarder](), reflect.TypeFor[runtime.LogReader](),
		reflect.TypeFor[runtime.Checkpointer](), reflect.TypeFor[runtime.PodCheckpointer](),
		reflect.TypeFor[runtime.StatsProvider](), reflect.TypeFor[runtime.ImageFSReporter](),
		reflect.TypeFor[podworker.Retainer](), reflect.TypeFor[podworker.Reconciler](), reflect.TypeFor[podworker.Updater](),
		reflect.TypeFor[podworker.ProgressReporter](), reflect.TypeFor[pipeline.BlockedReporter](), reflect.TypeFor[agent.VolumeHolder](),
		reflect.TypeFor[volume.Refresher](), reflect.TypeFor[volume.ObjectReferrer](), reflect.TypeFor[volume.Attacher](),
		reflect.TypeFor[volume.Stager](), reflect.TypeFor[volume.Expander](), reflect.TypeFor[volume.MountOptioner](),
		reflect.TypeFor[volume.BlockMapper](), reflect.TypeFor[volume.SELinuxMounter](), reflect.TypeFor[volume.HealthReporter](),
		reflect.TypeFor[imagegc.Forgetter](), reflect.TypeFor[images.WithoutImages](), reflect.TypeFor[cri.LocalStreams](),
		reflect.TypeFor[mount.MounterForceUnmounter](),
	}
}

// find returns the optional interfaces that compose.As finds in part.
func find(part any) (found []string) {
	for _, o := range optional() {
		for at := part; at != nil; {
			if reflect.TypeOf(at).Implements(o) {
				found = append(found, o.String())
				break
			}
			w, ok := at.(compose.Wrapper)
			if !ok {
				break
			}
			at = w.Unwrap()
		}
	}
	return found
}

// eachPart calls f with the parts of a configuration: its fields, and elements of fields, that are
// interfaces of this repository or of Kubernetes. f returns the part that replaces it.
func eachPart(path string, v reflect.Value, f func(path string, part reflect.Value) reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if from := v.Type().PkgPath(); !v.IsNil() && (strings.HasPrefix(from, "github.com/kubeparts/") || strings.HasPrefix(from, "k8s.io/")) {
			v.Set(f(path, v))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachPart(path+"."+v.Type().Field(i).Name, v.Field(i), f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachPart(path+"["+strconv.Itoa(i)+"]", v.Index(i), f)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			eachPart(path+"["+key.String()+"]", element, f)
			v.SetMapIndex(key, element)
		}
	}
}

// everyPart returns functions for the configurations of all subsystems and components.
func everyPart(f func(path string, part reflect.Value) reflect.Value) []compose.Adjustment {
	each := func(name string, cfg reflect.Value) { eachPart(name, cfg, f) }
	return adjusttest.Functions(options.Adjustable(), each)
}

// wrappable returns Configs whose kubelets have all kinds of parts: a standalone one, and a member of
// a cluster.
func wrappable(t *testing.T) map[string]Config {
	t.Helper()
	alone := runnable(t, "port: -1\naddress: 127.0.0.1\nauthentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n")
	alone.Runtime.Processes = false
	alone.Configuration.CgroupsPerQOS, alone.Configuration.EnforceNodeAllocatable = new(false), []string{"none"}

	member := runnable(t, "port: -1\naddress: 127.0.0.1\nhealthzPort: 0\n")
	member.Configuration.StaticPodPath = ""
	conn, err := client.ConnectTo(new(apitest.Server).RESTConfig(), client.Config{})
	require.NoError(t, err)
	member.Cluster.Client = conn
	return map[string]Config{"standalone": alone, "cluster": member}
}

// A parts is the optional interfaces of the parts of a kubelet, by path.
type parts map[string][]string

// open opens a kubelet with the functions and returns its parts. The functions are called first.
func open(t *testing.T, cfg Config, adjust ...compose.Adjustment) (parts, error) {
	t.Helper()
	found := parts{}
	cfg.Adjust = append(adjust, everyPart(func(path string, part reflect.Value) reflect.Value {
		found[path] = find(part.Interface())
		return part
	})...)
	k, err := Open(t.Context(), cfg)
	if err == nil {
		require.NoError(t, k.Close())
	}
	return found, err
}

// wrapped returns functions that wrap every part. They fail the test if there is no wrapper for one.
func wrapped(t *testing.T) []compose.Adjustment {
	all := wrappers()
	return everyPart(func(path string, part reflect.Value) reflect.Value {
		w := all[part.Type()]
		if w == nil {
			t.Errorf("%s: add a wrapper for %s", path, part.Type())
			return part
		}
		return w(part, true)
	})
}

// Every part that Adjust can wrap is wrapped in a type that only forwards the required methods and has
// Unwrap.
func TestAWrappedPartKeepsItsOptionalInterfaces(t *testing.T) {
	for name, cfg := range wrappable(t) {
		t.Run(name, func(t *testing.T) {
			before, err := open(t, cfg)
			require.NoError(t, err)
			after, err := open(t, cfg, wrapped(t)...)
			require.NoError(t, err)
			assert.Equal(t, before, after)
			assert.Greater(t, len(before), 50)
			for _, path := range []string{"agent.Config.Runtime", "agent.Config.Subsystems.Volumes", "podworker.Config.Handler", "server.Config.Runtime"} {
				assert.NotEmpty(t, after[path], path)
			}
		})
	}
}

// looksFor has the optional interfaces that a subsystem looks for in a part, by the path of the part.
// The streams of a CRI service without cri.LocalStreams are those of its streaming server.
var looksFor = map[string]struct {
	name     string // of the part, in an error
	optional []string
}{
	"agent.Config.Runtime":              {"agent: Config.Runtime", []string{"runtime.Checker", "runtime.GarbageCollector", "runtime.Watcher"}},
	"agent.Config.Subsystems.Volumes":   {"agent: Config.Subsystems.Volumes", []string{"podworker.Retainer", "agent.VolumeHolder", "pipeline.BlockedReporter"}},
	"pleg.Config.Runtime":               {"pleg: Config.Runtime", []string{"runtime.Watcher"}},
	"pipeline.Config.Resources.Volumes": {"pipeline: Config.Resources.Volumes", []string{"pipeline.BlockedReporter"}},
	"podworker.Config.Handler":          {"podworker: Config.Handler", []string{"podworker.Retainer", "podworker.Reconciler", "podworker.Updater", "podworker.ProgressReporter"}},
	"imagegc.Config.Store":              {"imagegc: Config.Store", []string{"imagegc.Forgetter"}},
	"server.Config.Runtime": {"server: Config.Runtime", []string{"runtime.Execer", "runtime.StreamExecer", "runtime.StreamServer", "runtime.Attacher",
		"runtime.PortForwarder", "runtime.LogReader", "runtime.Checkpointer"}},
	"volume.Config.Plugins": {"volume: Config.Plugins[", []string{"volume.Refresher", "volume.ObjectReferrer", "volume.Attacher", "volume.Stager", "volume.Expander",
		"volume.MountOptioner", "volume.BlockMapper", "volume.SELinuxMounter", "volume.HealthReporter"}},
}

// A wrapper without Unwrap that hides an optional interface which the kubelet looks for is reported,
// with the field and the interface.
func TestAWrapperWithoutUnwrapIsReportedByName(t *testing.T) {
	all, reported := wrappers(), map[string]bool{}
	for name, cfg := range wrappable(t) {
		found, err := open(t, cfg)
		require.NoError(t, err)
		for path, optional := range found {
			kind, _, _ := strings.Cut(path, "[")
			used := looksFor[kind]
			i := slices.IndexFunc(optional, func(o string) bool { return slices.Contains(used.optional, o) })
			if i < 0 {
				continue
			}
			_, err := open(t, cfg, everyPart(func(at string, part reflect.Value) reflect.Value {
				if at != path {
					return part
				}
				return all[part.Type()](part, false)
			})...)
			require.Error(t, err, "%s %s", name, path)
			assert.Contains(t, err.Error(), used.name, path)
			assert.Regexp(t, `struct .* hides .*\((`+strings.Join(used.optional, "|")+`)\) of .*; add Unwrap`, err.Error())
			reported[kind] = true
		}
	}
	assert.Len(t, reported, len(looksFor), "each was tried: %v", reported)
}

// The volumes of a removed pod, and those of pods of an earlier kubelet, are collected although every
// part is wrapped.
func TestVolumesOfRemovedPodsAreCollectedThroughWrappers(t *testing.T) {
	cfg := runnable(t, "fileCheckFrequency: 10ms\n")
	manifest := filepath.Join(cfg.Configuration.StaticPodPath, "web.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {
		containers: [{name: main, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}}]}}`), 0o600))
	pods := filepath.Join(cfg.RootDir, "pods")
	orphan := filepath.Join(pods, "0b0e2bc1-5f3a-4c0e-8c71-3f6c1f2a9d10")
	require.NoError(t, os.MkdirAll(filepath.Join(orphan, "volumes", "kubernetes.io~empty-dir", "data"), 0o750))
	cfg.Adjust = append(wrapped(t), compose.Adjust(func(c *podworker.LoopConfig) { c.GarbagePeriod = 50 * time.Millisecond }))
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-stopped) })

	volumes := func() []string {
		found, err := filepath.Glob(filepath.Join(pods, "*", "volumes", "kubernetes.io~empty-dir", "data"))
		require.NoError(t, err)
		return found
	}
	require.Eventually(t, func() bool { return len(volumes()) == 1 && !strings.HasPrefix(volumes()[0], orphan) }, time.Minute, 10*time.Millisecond,
		"that of the earlier kubelet is removed, that of the pod is not")
	require.NoError(t, os.Remove(manifest))
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(pods)
		return err == nil && len(left) == 0
	}, time.Minute, 10*time.Millisecond)
}
