package cri_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The complete requests are compared with golden files: labels, annotations,
// names and log paths are identical to a kubelet's (rt-15).
// burstable implements cri.Cgroups.
type burstable struct{ cri.Cgroups }

func (burstable) CgroupParent(pod *v1.Pod) string { return "/kubepods/burstable/pod" + string(pod.UID) }

func TestRequestsToTheRuntime(t *testing.T) {
	f := newFake()
	f.has("registry.example/shop:1.2", "img:latest")
	volume := t.TempDir()
	rt, _ := f.engine(t, cri.Config{
		Providers: cri.Providers{Cgroups: burstable{}},
		Node: cri.Node{DNS: cri.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", ResolvConf: os.DevNull},
			IPs: func() []string { return []string{"192.0.2.1"} }, Facts: podconfig.Node{MemoryBytes: 4 << 30},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3500m")},
		},
	})
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: fullPod(), Volumes: map[string]runtime.Volume{"data": {Path: volume}, "conf": {Path: volume}}})
	require.NoError(t, err)
	hide := strings.NewReplacer(volume, "VOLUME", filepath.Dir(filepath.Dir(f.sandboxes()[0].Config.LogDirectory)), "DIR")
	golden(t, "sandbox.json", f.sandboxes()[0].Config, hide)
	golden(t, "container.json", f.newest("shop").Config, hide)
	golden(t, "plain.json", f.newest("plain").Config, hide)
}

// fullPod returns a pod that uses most of the fields that map to the CRI.
func fullPod() *v1.Pod {
	pod := podOf(
		v1.Container{
			Name: "shop", Image: "registry.example/shop:1.2", ImagePullPolicy: v1.PullIfNotPresent,
			Command: []string{"/bin/shop", "--name=$(NAME)"}, Args: []string{"$(NONE)", "$$(NAME)"}, WorkingDir: "/srv",
			Ports: []v1.ContainerPort{
				{Name: "http", ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP},
				{ContainerPort: 53, Protocol: v1.ProtocolUDP, HostIP: "127.0.0.1"},
			},
			Env: []v1.EnvVar{
				{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "ADDRESS", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIPs"}}},
				{Name: "CPUS", ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				{Name: "GREETING", Value: "hello $(NAME)"},
			},
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m"), v1.ResourceMemory: resource.MustParse("2Gi")},
			},
			VolumeMounts: []v1.VolumeMount{
				{Name: "data", MountPath: "/data", SubPathExpr: "$(NAME)/files", MountPropagation: new(v1.MountPropagationHostToContainer)},
				{Name: "conf", MountPath: "/etc/shop"},
			},
			Lifecycle: &v1.Lifecycle{
				PreStop:    &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/bye"}}},
				StopSignal: new(v1.SIGQUIT),
			},
			SecurityContext: &v1.SecurityContext{
				RunAsUser: new(int64(1000)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities:    &v1.Capabilities{Add: []v1.Capability{"NET_BIND_SERVICE"}, Drop: []v1.Capability{"ALL"}},
				SeccompProfile:  &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("shop.json")},
				AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault},
			},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageFallbackToLogsOnError,
		},
		v1.Container{Name: "plain", Image: "img", ImagePullPolicy: v1.PullIfNotPresent},
	)
	pod.Labels = map[string]string{"app": "shop", "io.kubernetes.pod.name": "not-this"}
	pod.Annotations = map[string]string{"example.com/note": "kept"}
	pod.DeletionGracePeriodSeconds = new(int64(20))
	pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.SetHostnameAsFQDN = "front", "shops", new(true)
	pod.Spec.DNSPolicy = v1.DNSClusterFirst
	pod.Spec.DNSConfig = &v1.PodDNSConfig{Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
	pod.Spec.HostAliases = []v1.HostAlias{{IP: "192.0.2.9", Hostnames: []string{"db", "db.example"}}}
	pod.Spec.Overhead = v1.ResourceList{v1.ResourceMemory: resource.MustParse("16Mi")}
	pod.Spec.ShareProcessNamespace = new(true)
	pod.Spec.SecurityContext = &v1.PodSecurityContext{
		RunAsUser: new(int64(1)), RunAsNonRoot: new(true), FSGroup: new(int64(2000)), SupplementalGroups: []int64{3000},
		SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c1"},
		Sysctls:        []v1.Sysctl{{Name: "net/ipv4/ip_local_port_range", Value: "1024 65535"}},
	}
	pod.Spec.Volumes = []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
	}
	return pod
}

// messageFileName is random.
var messageFileName = regexp.MustCompile(`/containers/shop/[0-9a-f]{8}"`)

// golden compares got with a file of testdata. Enums that are zero are left
// out: POD of namespaces, RuntimeDefault of profiles.
func golden(t *testing.T, name string, got proto.Message, hide *strings.Replacer) {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(got)
	require.NoError(t, err)
	var plain any // the whitespace of protojson's output is randomized
	require.NoError(t, json.Unmarshal(raw, &plain))
	pretty, err := json.MarshalIndent(plain, "", "  ")
	require.NoError(t, err)
	text := messageFileName.ReplaceAllString(hide.Replace(string(pretty)), `/containers/shop/RANDOM"`) + "\n"
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update")
	assert.Equal(t, string(want), text)
}
