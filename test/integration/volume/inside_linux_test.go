package volume_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mount "k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/csitest"
	"github.com/kubeparts/kubeparts/volume/csi/register"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/image"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/token"
)

const csiDriver = "dir.csi.kubeparts.test"

// cluster is what an API server would have for the volumes.
type cluster struct {
	mu  sync.Mutex
	cm  *v1.ConfigMap
	dir string                          // of the local volume
	pvs map[string]*v1.PersistentVolume // by the names of their claims; others are generated
}

func (c *cluster) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cm, nil
}

func (c *cluster) set(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cm = &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Data: map[string]string{"color": value, "shade": value}}
}

func (c *cluster) Secret(context.Context, string, string) (*v1.Secret, error) {
	return &v1.Secret{Data: map[string][]byte{"password": []byte("sesame")}}, nil
}

func (c *cluster) PersistentVolumeClaim(_ context.Context, ns, name string) (*v1.PersistentVolumeClaim, error) {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, UID: types.UID(name)},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}, nil
}

func (*cluster) ClaimExpanded(context.Context, *v1.PersistentVolumeClaim, resource.Quantity) error {
	return nil
}

func (c *cluster) PersistentVolume(_ context.Context, name string) (*v1.PersistentVolume, error) {
	pv := &v1.PersistentVolume{}
	given := c.pvs[strings.TrimPrefix(name, "pv-")]
	if given != nil {
		pv = given.DeepCopy()
	}
	pv.Name = name
	pv.Spec.ClaimRef = &v1.ObjectReference{UID: types.UID(strings.TrimPrefix(name, "pv-"))}
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	switch {
	case given != nil:
	case name == "pv-local":
		pv.Annotations = map[string]string{"pv.beta.kubernetes.io/gid": "7777"}
		pv.Spec.Local = &v1.LocalVolumeSource{Path: c.dir}
	default:
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: "one", FSType: "ext4"}
	}
	return pv, nil
}

func (c *cluster) Token(_ context.Context, _, name string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	r = r.DeepCopy()
	r.Status.Token, r.Status.ExpirationTimestamp = "token-of-"+name, metav1.NewTime(time.Now().Add(time.Hour))
	return r, nil
}

// A volumeNode is a pod engine with volumes on a containerd, on a directory that
// is a shared mount.
type volumeNode struct {
	*pipeline.Pipeline
	objects *cluster
	rt      *cri.Runtime
	m       *volume.Manager
	root    string
	dir     string
	images  bool // the runtime mounts images

	hugePages bool // the kernel has pages of 2 MiB, perhaps none free

	mu     sync.Mutex
	events []string
}

func newVolumeNode(t *testing.T) *volumeNode {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	dir, err := os.MkdirTemp("", "kpv") // short: the paths of sockets are
	require.NoError(t, err)
	s := &volumeNode{objects: new(cluster), dir: dir}
	s.objects.set("blue")
	version, err := client.Runtime.Version(t.Context(), "")
	require.NoError(t, err)
	_, err = os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB")
	s.hugePages = err == nil
	s.images = !strings.HasPrefix(strings.TrimPrefix(version.RuntimeVersion, "v"), "1.")
	require.NoError(t, unix.Mount("stage", s.dir, "tmpfs", 0, ""))
	t.Cleanup(func() {
		_ = unix.Unmount(s.dir, unix.MNT_DETACH)
		require.NoError(t, os.Remove(s.dir))
	})
	require.NoError(t, unix.Mount("", s.dir, "", unix.MS_SHARED|unix.MS_REC, ""))
	s.root, s.objects.dir = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "local")
	for _, dir := range []string{s.root, s.objects.dir, s.host(), filepath.Join(s.host(), "below"), filepath.Join(s.dir, "driver")} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	record := func(e runtime.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e.Reason+" "+e.Message)
	}
	s.m = volumesOver(t, s, record)
	s.rt, err = cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Dirs: cri.Dirs{Root: s.root, PodLogs: filepath.Join(s.dir, "logs")}, Record: record,
		Providers: cri.Providers{Volumes: s.m},
	})
	require.NoError(t, err)
	s.Pipeline, err = pipeline.New(pipeline.Config{Runtime: s.rt, Resources: pipeline.Resources{Volumes: s.m}, Record: record})
	require.NoError(t, err)
	return s
}

func (s *volumeNode) host() string { return filepath.Join(s.dir, "host") }

// volumesOver returns a manager with every plugin and a CSI driver.
func volumesOver(t *testing.T, s *volumeNode, record func(runtime.Event)) *volume.Manager {
	t.Helper()
	mounter := mount.New("")
	tokens, err := token.New(token.Config{Get: s.objects.Token})
	require.NoError(t, err)
	empty, err := emptydir.New(emptydir.Config{Mounter: mounter})
	require.NoError(t, err)
	plugins := []volume.Plugin{empty, new(hostpath.Plugin), new(image.Plugin)}
	add := func(p volume.Plugin, err error) {
		t.Helper()
		require.NoError(t, err)
		plugins = append(plugins, p)
	}
	add(configmap.New(configmap.Config{Objects: s.objects, Mounter: mounter}))
	add(secret.New(secret.Config{Objects: s.objects, Tmpfs: empty.Tmpfs()}))
	add(downward.New(downward.Config{Tmpfs: empty.Tmpfs()}))
	add(projected.New(projected.Config{Objects: s.objects, Tokens: tokens, Tmpfs: empty.Tmpfs()}))
	add(local.New(local.Config{RootDir: s.root, Mounter: mounter, Exec: exec.New()}))
	var m *volume.Manager
	driven, err := csi.New(csi.Config{RootDir: s.root, NodeName: "node", Mounter: mounter, Objects: s.objects, Tokens: tokens, Changed: func() { m.PluginChanged(csi.Name) }})
	add(driven, err)
	m, err = volume.New(volume.Config{RootDir: s.root, Plugins: plugins, Mounter: mounter, PersistentVolumes: volume.PersistentVolumeConfig{Claims: s.objects}, Record: record, StatsPeriod: -1, WaitTimeout: time.Minute})
	require.NoError(t, err)
	registry := filepath.Join(s.root, "plugins_registry")
	watcher, err := register.New(register.Config{Dir: registry, Handlers: map[string]register.Handler{register.CSIPlugin: driven}})
	require.NoError(t, err)
	driver := &csitest.Driver{
		Name: csiDriver, Dir: filepath.Join(s.dir, "driver"), Mounter: mounter,
		Without: []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP}, // so we do it (vol-67)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{m.Run, watcher.Run, func(ctx context.Context) error { return driver.Run(ctx, s.root) }} {
		wg.Go(func() { assert.NoError(t, run(ctx)) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return m
}

// volumePod has a volume of each kind, and a container that uses them all.
func volumePod(s *volumeNode) *v1.Pod {
	group, user, grace := int64(4321), int64(1000), int64(0)
	toContainer := v1.MountPropagationHostToContainer
	readOnly := int32(0o440)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default", UID: "uid-volumes", Labels: map[string]string{"app": "shop"}}}
	p.Spec = v1.PodSpec{
		TerminationGracePeriodSeconds: &grace, DNSPolicy: v1.DNSNone, RestartPolicy: v1.RestartPolicyAlways, ServiceAccountName: "builder",
		SecurityContext: &v1.PodSecurityContext{FSGroup: &group, RunAsUser: &user},
		Volumes: []v1.Volume{
			{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
			{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
			{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}}},
			{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s", DefaultMode: &readOnly}}},
			{Name: "down", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			}}}},
			{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
				{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}},
			}}}},
			{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: s.host()}}},
			{Name: "local", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "local"}}},
			{Name: "csi", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "csi"}}},
			{Name: "inline", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: csiDriver}}},
		},
	}
	if s.images {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: lab.Busybox, PullPolicy: v1.PullNever}}})
	}
	c := v1.Container{Name: "c", Image: lab.Busybox, ImagePullPolicy: v1.PullNever, Command: []string{"sleep", "100000"}, Env: []v1.EnvVar{{Name: "ME", Value: "me"}}}
	if s.hugePages {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "huge", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumHugePages}}})
		two := v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
		c.Resources = v1.ResourceRequirements{Requests: two, Limits: two}
	}
	for _, v := range p.Spec.Volumes {
		m := v1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name}
		if v.Name == "host" {
			m.MountPropagation = &toContainer
		}
		c.VolumeMounts = append(c.VolumeMounts, m)
	}
	c.VolumeMounts = append(c.VolumeMounts,
		v1.VolumeMount{Name: "empty", MountPath: "/sub", SubPathExpr: "a/$(ME)"},
		v1.VolumeMount{Name: "conf", MountPath: "/color", SubPath: "color"},
		v1.VolumeMount{Name: "empty", MountPath: "/closed", ReadOnly: true},
	)
	p.Spec.Containers = []v1.Container{c}
	return p
}

// Each kind of volume is mounted in a real container, and read from inside: modes,
// owners, content, what is read-only, sub-paths, propagation, and what changes.
// In the end only files of others remain.
func TestIntegrationVolumesAreReadFromInside(t *testing.T) {
	lab.Need(t, "containerd")
	s := newVolumeNode(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.objects.dir, "kept"), []byte("kept"), 0o600))
	p := volumePod(s)
	var id string
	require.Eventually(t, func() bool {
		st, err := s.rt.PodStatus(t.Context(), p.UID)
		require.NoError(t, err)
		if len(st.Containers) > 0 && st.Containers[0].State == runtime.ContainerRunning {
			id = st.Containers[0].ID
			return true
		}
		_, err = s.Sync(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st})
		require.NoError(t, err, "%v", s.events)
		return false
	}, time.Minute, 100*time.Millisecond)
	sh := func(script string) string {
		res, err := s.rt.Exec(t.Context(), id, []string{"sh", "-c", "{ " + script + "; } 2>&1"}, time.Minute)
		require.NoError(t, err)
		return strings.TrimSpace(string(res.Stdout))
	}

	checks := map[string]struct{ script, want string }{
		"emptyDir (vol-44, vol-65)":   {"stat -c '%a %g' /empty; touch /empty/x && stat -c '%u %g' /empty/x", "2777 4321\n1000 4321"},
		"memory (vol-45)":             {"grep -c ' /memory tmpfs ' /proc/mounts; touch /memory/x && echo ok", "1\nok"},
		"configMap (vol-51)":          {"cat /conf/color; readlink /conf/color; echo; stat -Lc '%a %g' /conf/color; touch /conf/x", "blue..data/color\n\n644 4321\ntouch: /conf/x: Read-only file system"},
		"secret (vol-52)":             {"cat /secret/password; echo; stat -Lc '%a %u %g' /secret/password; grep -c ' /secret tmpfs ro' /proc/mounts", "sesame\n440 0 4321\n1"},
		"downward API (vol-53)":       {"cat /down/labels", `app="shop"`},
		"projected (vol-54, vol-55)":  {"cat /all/token /all/color; echo; stat -Lc '%a %u' /all/token", "token-of-builderblue\n640 1000"},
		"hostPath (vol-50)":           {"stat -c '%a %u %g' /host; touch /host/x", "755 0 0\ntouch: /host/x: Permission denied"},
		"local (vol-59, vol-65)":      {"cat /local/kept; echo; stat -c '%a %g' /local/kept", "kept\n660 4321"},
		"groups (vol-68)":             {"id -G | tr ' ' '\\n' | grep -c 7777", "1"},
		"CSI (vol-61)":                {"touch /csi/x && stat -c '%u %g' /csi/x", "1000 4321"},
		"CSI inline (vol-62)":         {"stat -c '%F' /inline", "directory"},
		"subPath of links (vol-69)":   {"cat /color", "blue"},
		"subPathExpr (vol-70,vol-71)": {"touch /sub/y && ls /empty/a/me", "y"},
		"read-only (vol-72)":          {"touch /closed/x", "touch: /closed/x: Read-only file system"},
		"etc/hosts (vol-75, pe-14)":   {"grep -c pod /etc/hosts", "1"},
	}
	if s.images {
		checks["image (vol-60)"] = struct{ script, want string }{"ls /image/bin/busybox; touch /image/x", "/image/bin/busybox\ntouch: /image/x: Read-only file system"}
	}
	if s.hugePages { // the size of a file is limited by the number of pages; creating it needs none
		checks["huge pages (vol-46)"] = struct{ script, want string }{
			"grep ' /huge hugetlbfs ' /proc/mounts | grep -c pagesize=2M; stat -c '%a %g' /huge; touch /huge/x && stat -c '%u %g' /huge/x", "1\n2775 4321\n1000 4321",
		}
	} else {
		t.Log("huge pages: the kernel has none of 2 MiB")
	}
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		assert.Equal(t, checks[name].want, strings.ReplaceAll(sh(checks[name].script), "\r", ""), name)
	}

	// Propagation: a mount made on the machine afterwards is visible in the pod.
	require.NoError(t, unix.Mount("late", filepath.Join(s.host(), "below"), "tmpfs", 0, ""))
	require.NoError(t, os.WriteFile(filepath.Join(s.host(), "below", "late"), nil, 0o644))
	assert.Equal(t, "late", sh("ls /host/below"))
	require.NoError(t, unix.Unmount(filepath.Join(s.host(), "below"), 0))

	// A change is pushed, and never seen through a subPath (vol-42).
	s.objects.set("green")
	begun := time.Now()
	s.m.ObjectChanged("ConfigMap", "default", "conf")
	require.Eventually(t, func() bool { return sh("cat /conf/color /conf/shade /all/color") == "greengreengreen" }, 90*time.Second, 10*time.Millisecond)
	t.Logf("the change was seen within %v", time.Since(begun))
	assert.Equal(t, "blue", sh("cat /color"))

	// A restarted container has the same volumes, and new mounts of its sub-paths.
	points := func() (below []string) {
		list, err := mount.New("").List()
		require.NoError(t, err)
		for _, m := range list {
			if strings.HasPrefix(m.Path, s.root+"/pods/") {
				below = append(below, strings.TrimPrefix(m.Path, s.root+"/pods/"))
			}
		}
		slices.Sort(below)
		return below
	}
	before := points()
	ours := slices.DeleteFunc(slices.Clone(before), func(m string) bool { return strings.HasSuffix(m, "/huge") }) // not everywhere
	assert.Equal(t, []string{
		fmt.Sprintf("uid-volumes/volume-subpaths/conf/c/%d", len(p.Spec.Volumes)+1), fmt.Sprintf("uid-volumes/volume-subpaths/empty/c/%d", len(p.Spec.Volumes)),
		"uid-volumes/volumes/kubernetes.io~csi/inline/mount", "uid-volumes/volumes/kubernetes.io~csi/pv-csi/mount",
		"uid-volumes/volumes/kubernetes.io~downward-api/down", "uid-volumes/volumes/kubernetes.io~empty-dir/memory",
		"uid-volumes/volumes/kubernetes.io~local-volume/pv-local", "uid-volumes/volumes/kubernetes.io~projected/all",
		"uid-volumes/volumes/kubernetes.io~secret/secret",
	}, ours)

	// The end.
	st, err := s.rt.PodStatus(t.Context(), p.UID)
	require.NoError(t, err)
	require.NoError(t, s.Terminate(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st, GracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds}))
	require.NoError(t, s.Cleanup(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st}), "%v", s.events)
	assert.Empty(t, points())
	assert.NoDirExists(t, filepath.Join(s.root, "pods/uid-volumes/volumes"))
	kept, err := os.ReadFile(filepath.Join(s.objects.dir, "kept"))
	require.NoError(t, err)
	assert.Equal(t, "kept", string(kept), "a local volume outlives its pod")
}
