package podconfig_test

import (
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestAFieldHasTheSourceOfItsValue(t *testing.T) {
	level := func(s string) *v1.SELinuxOptions { return &v1.SELinuxOptions{Level: s} }
	local := func(name string) *v1.AppArmorProfile {
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	for want, change := range map[string]func(in *podconfig.PodInput, inst *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext){
		"runAsUser: 0 (default)": nil,
		"runAsUser: 7 (image)": func(_ *podconfig.PodInput, inst *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			inst.User.UID = new(int64(7))
		},
		"runAsUser: web (image)": func(_ *podconfig.PodInput, inst *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			inst.User.Name = "web"
		},
		"runAsUser: 8 (pod)": func(_ *podconfig.PodInput, inst *podconfig.ContainerInput, _ *v1.SecurityContext, of *v1.PodSecurityContext) {
			inst.User.UID, of.RunAsUser = new(int64(7)), new(int64(8))
		},
		"runAsUser: 9 (container, instead of 8)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext) {
			own.RunAsUser, of.RunAsUser = new(int64(9)), new(int64(8))
		},
		"runAsUser: 6 (container)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext) {
			own.RunAsUser, of.RunAsUser = new(int64(6)), new(int64(6))
		},
		"runAsNonRoot: false (container, instead of true)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext) {
			own.RunAsNonRoot, of.RunAsNonRoot = new(false), new(true)
		},
		"supplementalGroups: 1 2 (pod)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, of *v1.PodSecurityContext) {
			of.FSGroup, of.SupplementalGroups = new(int64(1)), []int64{2}
		},
		"supplementalGroups: 3 (volumes)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			in.Groups = []int64{3}
		},
		"allowPrivilegeEscalation: false (container)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, _ *v1.PodSecurityContext) {
			own.AllowPrivilegeEscalation = new(false)
		},
		"capabilities: +NET_ADMIN -ALL (container)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, _ *v1.PodSecurityContext) {
			own.Capabilities = &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"ALL"}}
		},
		"procMount: Default (default)": nil,
		"procMount: Unmasked (container)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, _ *v1.PodSecurityContext) {
			own.ProcMount = new(v1.UnmaskedProcMount)
		},
		"seccompProfile: Unconfined (default)": nil,
		"seccompProfile: RuntimeDefault (node)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			in.Node.Security.SeccompDefault = true
		},
		"seccompProfile: Localhost /seccomp/a.json (container, instead of RuntimeDefault)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext) {
			in.Node.Security.SeccompDir = "/seccomp"
			own.SeccompProfile = &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("a.json")}
			of.SeccompProfile = &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}
		},
		"appArmorProfile: - (default)": nil,
		"appArmorProfile: Localhost b (annotation, instead of Localhost a)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, of *v1.PodSecurityContext) {
			in.Pod.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/c": "localhost/b"}
			of.AppArmorProfile = local("a")
		},
		"appArmorProfile: Localhost a (pod)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, of *v1.PodSecurityContext) {
			of.AppArmorProfile = local("a")
		},
		"seLinuxOptions: s0:c1 (container, instead of s0:c2)": func(_ *podconfig.PodInput, _ *podconfig.ContainerInput, own *v1.SecurityContext, of *v1.PodSecurityContext) {
			own.SELinuxOptions, of.SELinuxOptions = level("s0:c1"), level("s0:c2")
		},
		"hostNetwork: POD (default)": nil,
		"hostNetwork: NODE (pod)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			in.Pod.Spec.HostNetwork = true
		},
		"hostPID: POD (pod)": func(in *podconfig.PodInput, _ *podconfig.ContainerInput, _ *v1.SecurityContext, _ *v1.PodSecurityContext) {
			in.Pod.Spec.ShareProcessNamespace = new(true)
		},
	} {
		t.Run(want, func(t *testing.T) {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
				Spec: v1.PodSpec{
					SecurityContext: new(v1.PodSecurityContext),
					Containers:      []v1.Container{{Name: "c", SecurityContext: new(v1.SecurityContext)}},
				},
			}
			in, inst := podconfig.PodInput{Pod: pod}, podconfig.ContainerInput{Container: &pod.Spec.Containers[0], Image: new(runtimeapi.ImageSpec)}
			if change != nil {
				change(&in, &inst, inst.Container.SecurityContext, pod.Spec.SecurityContext)
			}
			fields, err := podconfig.SecurityFields(in, inst)
			require.NoError(t, err)
			var words []string
			for _, f := range fields {
				words = append(words, f.String())
			}
			assert.Contains(t, words, want)
			again, err := podconfig.SecurityFields(in, inst)
			require.NoError(t, err)
			assert.Equal(t, fields, again)
		})
	}
}

// SecurityFields covers every field of the CRI's message: a new field of the CRI fails
// the test until it is added.
func TestEachFieldOfTheSecurityContextIsReported(t *testing.T) {
	reported := map[string]string{
		"capabilities": "capabilities", "privileged": "privileged", "namespace_options": "hostNetwork, hostIPC, hostPID, hostUsers",
		"selinux_options": "seLinuxOptions", "run_as_user": "runAsUser", "run_as_username": "runAsUser", "run_as_group": "runAsGroup",
		"readonly_rootfs": "readOnlyRootFilesystem", "supplemental_groups": "supplementalGroups", "supplemental_groups_policy": "supplementalGroupsPolicy",
		"no_new_privs": "allowPrivilegeEscalation", "masked_paths": "procMount", "readonly_paths": "procMount",
		"seccomp": "seccompProfile", "apparmor": "appArmorProfile", "apparmor_profile": "appArmorProfile", "seccomp_profile_path": "not sent any more",
	}
	if runtime.KubernetesMinor >= 38 {
		reported["cgroup_mount_mode"] = "not sent"
	}
	fields := new(runtimeapi.LinuxContainerSecurityContext).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		assert.Contains(t, reported, string(fields.Get(i).Name()))
	}
	assert.Len(t, reported, fields.Len())
}

func TestSecurityFieldsOfAnIncompleteInput(t *testing.T) {
	_, err := podconfig.SecurityFields(podconfig.PodInput{}, podconfig.ContainerInput{})
	assert.EqualError(t, err, "podconfig: PodInput.Pod or ContainerInput.Container is nil")
}

func ExampleSecurityFields() {
	pod := &v1.Pod{Spec: v1.PodSpec{
		SecurityContext: &v1.PodSecurityContext{RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000))},
		Containers:      []v1.Container{{Name: "web", SecurityContext: &v1.SecurityContext{RunAsUser: new(int64(101))}}},
	}}
	fields, err := podconfig.SecurityFields(podconfig.PodInput{Pod: pod, Node: podconfig.Node{Security: podconfig.Security{SeccompDefault: true}}},
		podconfig.ContainerInput{Container: &pod.Spec.Containers[0], Image: &runtimeapi.ImageSpec{Image: "web"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range fields {
		if f.From != podconfig.ByDefault {
			fmt.Println(f)
		}
	}
	// Output:
	// runAsUser: 101 (container, instead of 1000)
	// runAsGroup: 1000 (pod)
	// seccompProfile: RuntimeDefault (node)
}
