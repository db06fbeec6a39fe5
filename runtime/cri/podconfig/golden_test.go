package podconfig_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A goldenCase is a file of testdata: a pod, optionally preceded by a document of
// facts. Its comments describe it:
//
//	# shows: one sentence
//	# rules: se-4, rt-83
//	# proves: SecurityContext.runAsUser, PodSecurityContext.runAsUser
//
// A key is a type and a field, as in internal/podfields.
type goldenCase struct {
	name   string
	facts  facts
	pod    *v1.Pod
	rules  []string
	proves []string
}

// facts are the inputs that are not part of the pod.
type facts struct {
	Node          podconfig.Node
	Handler       podconfig.RuntimeHandler
	UserNamespace *struct{ First, Length uint32 }
	Groups        []int64
	ExclusiveCPUs []string
	Volumes       map[string]podconfig.Volume // else at /volumes/<name>
	Absent        []string                    // volumes that are not there
	Containers    map[string]struct {
		Restarts    int32
		User        podconfig.User
		TargetID    string
		Devices     []*runtimeapi.Device
		Mounts      []*runtimeapi.Mount
		CDIDevices  []string
		Annotations map[string]string
		CPUs        string
		MemoryNodes string
	}
}

var headerLine = regexp.MustCompile(`(?m)^# (shows|rules|proves): (.*)$`)

func goldenCases(t *testing.T) []goldenCase {
	t.Helper()
	files, err := filepath.Glob("testdata/pods/*.yaml")
	require.NoError(t, err)
	var cases []goldenCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		gc := goldenCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		shows := ""
		for _, m := range headerLine.FindAllStringSubmatch(string(text), -1) {
			switch m[1] {
			case "shows":
				shows = m[2]
			case "rules":
				gc.rules = append(gc.rules, strings.Split(m[2], ", ")...)
			case "proves":
				gc.proves = append(gc.proves, strings.Split(m[2], ", ")...)
			}
		}
		require.NotEmpty(t, shows, "%s has no shows line", file)
		spec := text
		gc.facts.Node = podconfig.Node{MemoryBytes: 8 << 30, CgroupVersion: 2, Security: podconfig.Security{SeccompDir: "/seccomp"}}
		if first, second, ok := bytes.Cut(text, []byte("\n---\n")); ok {
			require.NoError(t, yaml.UnmarshalStrict(first, &gc.facts), file)
			spec = second
		}
		gc.pod, err = manifest.Decode(spec)
		require.NoError(t, err, file)
		cases = append(cases, gc)
	}
	return cases
}

// The requests for the pods of testdata are compared with golden files as a whole.
func TestRequestsOfPods(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("paths are those of Linux")
	}
	cases := goldenCases(t)
	require.GreaterOrEqual(t, len(cases), 60)
	for _, gc := range cases {
		t.Run(gc.name, func(t *testing.T) {
			before := gc.pod.DeepCopy()
			got := gc.request(t)
			assert.Equal(t, before, gc.pod, "the input is not changed")
			assert.Equal(t, got, gc.request(t), "the same input gives the same request")
			file := filepath.Join("testdata", "pods", gc.name+".json")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "run go test -update")
			assert.Equal(t, string(want), got)
		})
	}
}

// A case that proves a field sets that field, and its request differs without it.
func TestEachCaseProvesItsFields(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("paths are those of Linux")
	}
	for _, gc := range goldenCases(t) {
		t.Run(gc.name, func(t *testing.T) {
			whole := gc.request(t)
			for _, key := range gc.proves {
				without := gc
				without.pod = gc.pod.DeepCopy()
				if !clear(reflect.ValueOf(&without.pod.Spec).Elem(), key) {
					t.Errorf("%s is not set in this pod", key)
				} else if without.request(t) == whole {
					t.Errorf("without %s the request is the same", key)
				}
			}
		})
	}
}

// clear sets every occurrence of the field in v to zero, and reports whether one
// was set.
func clear(v reflect.Value, key string) bool {
	found := false
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && clear(v.Elem(), key)
	case reflect.Slice:
		for i := range v.Len() {
			found = clear(v.Index(i), key) || found
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			return false
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if keyOf(v.Type(), f) == key && !v.Field(i).IsZero() {
				v.Field(i).SetZero()
				found = true
				continue
			}
			found = clear(v.Field(i), key) || found
		}
	}
	return found
}

// keyOf returns the key of a field in docs/pod-fields.md. The fields of ephemeral
// containers have the keys of all containers.
func keyOf(of reflect.Type, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.Replace(of.Name(), "EphemeralContainerCommon", "Container", 1) + "." + name
}

const clusterDomain = "cluster.local"

// request returns the requests for the pod, and the /etc/hosts of one with host
// aliases, as JSON, without zero values and with the names of enums.
func (gc goldenCase) request(t *testing.T) string {
	t.Helper()
	pod := gc.pod
	in := podconfig.PodInput{
		Pod: pod, Node: gc.facts.Node, Handler: gc.facts.Handler, Groups: gc.facts.Groups, ExclusiveCPUs: gc.facts.ExclusiveCPUs,
		LogDirectory: fmt.Sprintf("/logs/%s_%s_%s", pod.Namespace, pod.Name, pod.UID),
		CgroupParent: "/kubepods/pod" + string(pod.UID),
	}
	if u := gc.facts.UserNamespace; u != nil {
		ids := []*runtimeapi.IDMapping{{HostId: u.First, Length: u.Length}}
		in.UserNamespace = &runtimeapi.UserNamespace{Uids: ids, Gids: ids}
	}
	out := map[string]any{}
	dns, err := podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: clusterDomain}.ForPod(pod, podconfig.ResolvConf{
		Servers: []string{"192.0.2.53"}, Searches: []string{"example.com"}, Options: []string{"timeout:1"},
	}, nil)
	in.DNS = dns.Config
	if err == nil {
		in.Hostname, err = podconfig.SandboxHostname(pod, clusterDomain)
	}
	var sandbox *runtimeapi.PodSandboxConfig
	if err == nil {
		sandbox, err = podconfig.Sandbox(in, 0)
	}
	out["sandbox"] = answer(sandbox, err)
	if len(pod.Spec.HostAliases) > 0 {
		hosts, err := podconfig.HostsFile(pod, []string{"10.0.0.7"}, clusterDomain, "")
		if out["hosts"] = strings.Split(hosts, "\n"); err != nil {
			out["hosts"] = answer(nil, err)
		}
	}
	containers := map[string]any{}
	each := func(c *v1.Container) {
		inst, err := gc.instance(c)
		if err != nil {
			containers[c.Name] = answer(nil, err)
			return
		}
		config, err := podconfig.Container(in, inst)
		containers[c.Name] = answer(config, err)
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			each(&list[i])
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := v1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		each(&c)
	}
	out["containers"] = containers
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(out))
	return text.String()
}

// instance resolves the container's environment and volumes as an engine does.
func (gc goldenCase) instance(c *v1.Container) (podconfig.ContainerInput, error) {
	given := gc.facts.Containers[c.Name]
	inst := podconfig.ContainerInput{
		Container: c, RestartCount: given.Restarts, User: given.User, TargetID: given.TargetID,
		Image: &runtimeapi.ImageSpec{Image: "sha256:" + c.Image, UserSpecifiedImage: c.Image},
		Allocated: podconfig.AllocatedResources{
			Devices: given.Devices, Mounts: given.Mounts, CDIDevices: given.CDIDevices, Annotations: given.Annotations,
			CPUs: given.CPUs, MemoryNodes: given.MemoryNodes,
		},
		HostsFile: "/pods/etc-hosts", MessageFile: "/pods/" + c.Name + "/message",
	}
	env, err := podenv.New(podenv.Inputs{
		Pod: gc.pod, PodIPs: []string{"10.0.0.7"}, HostIPs: []string{"192.0.2.1"},
		Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")},
	}, c)
	if err != nil {
		return inst, err
	}
	for _, v := range env.Vars() {
		inst.Env = append(inst.Env, v1.EnvVar{Name: v.Name, Value: v.Value})
	}
	for _, m := range c.VolumeMounts {
		inst.Volumes = append(inst.Volumes, gc.volume(m, env))
	}
	for _, d := range c.VolumeDevices {
		inst.BlockDevices = append(inst.BlockDevices, podconfig.BlockDevice{HostPath: "/devices/" + d.Name})
	}
	return inst, nil
}

func (gc goldenCase) volume(m v1.VolumeMount, env *podenv.Env) podconfig.Volume {
	expanded, err := podenv.Expand(m.SubPathExpr, env.Get)
	if err != nil {
		panic(err)
	}
	sub := m.SubPath + expanded
	v := gc.facts.Volumes[m.Name]
	for _, absent := range gc.facts.Absent {
		if absent == m.Name {
			return v
		}
	}
	for _, of := range gc.pod.Spec.Volumes {
		if of.Name == m.Name && of.Image != nil {
			v.Image = &runtimeapi.ImageSpec{Image: "sha256:" + of.Image.Reference, UserSpecifiedImage: of.Image.Reference}
			v.ImageSubPath = sub
			return v
		}
	}
	v.HostPath = path.Join("/volumes", m.Name, sub)
	return v
}

func answer(m proto.Message, err error) any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return plain(m.ProtoReflect())
}

// plain converts a message for JSON encoding.
func plain(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name, v := string(f.Name()), m.Get(f)
		switch {
		case name == "cgroup_mount_mode" && !m.Has(f): // of the CRI of 1.38; the kubelet does not set it
		case f.Kind() == protoreflect.EnumKind && !f.IsList():
			out[name] = string(f.Enum().Values().ByNumber(v.Enum()).Name())
		case !m.Has(f):
		case f.IsMap():
			entries := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()] = v.Interface()
				return true
			})
			out[name] = entries
		case f.IsList():
			var list []any
			for i := range v.List().Len() {
				if of := v.List().Get(i); f.Kind() == protoreflect.MessageKind {
					list = append(list, plain(of.Message()))
				} else {
					list = append(list, of.Interface())
				}
			}
			if reflect.DeepEqual(list, standardPaths[name]) {
				list = []any{"(those of se-8)"}
			}
			out[name] = list
		case f.Kind() == protoreflect.MessageKind:
			out[name] = plain(v.Message())
		case f.Kind() == protoreflect.BytesKind:
			out[name] = string(v.Bytes())
		default:
			out[name] = v.Interface()
		}
	}
	return out
}

// standardPaths are the default paths, which are left out of the golden files.
var standardPaths = map[string][]any{
	"masked_paths": {
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	},
	"readonly_paths": {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
}
