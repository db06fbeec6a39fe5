package podconfig

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Sandbox returns the configuration of a pod's sandbox. The runtime handler is not part of
// it: RunPodSandbox has a separate parameter. The message of the error is for the event
// FailedCreatePodSandBox.
func Sandbox(in PodInput, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	pod := in.Pod
	if pod == nil {
		return nil, errors.New("podconfig: PodInput.Pod is nil")
	}
	linux, err := linuxSandbox(in)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt,
		},
		Labels:       sandboxLabels(pod),
		Annotations:  pod.Annotations,
		LogDirectory: in.LogDirectory,
		DnsConfig:    in.DNS,
		PortMappings: portMappings(pod),
		Linux:        linux,
	}
	if !pod.Spec.HostNetwork {
		config.Hostname = in.Hostname
	}
	return config, nil
}

// linuxSandbox returns the Linux part of the configuration (rules rt-21 to rt-23).
func linuxSandbox(in PodInput) (*runtimeapi.LinuxPodSandboxConfig, error) {
	pod := in.Pod
	ns, err := sandboxNamespaces(in)
	if err != nil {
		return nil, err
	}
	lc := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: in.CgroupParent,
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			Privileged:       anyPrivileged(pod),
			Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
			NamespaceOptions: ns,
		},
		Resources: podResources(in),
		Overhead:  overhead(in.Node, pod),
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return lc, nil
	}
	for _, set := range sc.Sysctls {
		if lc.Sysctls == nil {
			lc.Sysctls = map[string]string{}
		}
		lc.Sysctls[sysctl.NormalizeName(set.Name)] = set.Value
	}
	to := lc.SecurityContext
	if sc.RunAsUser != nil {
		to.RunAsUser = &runtimeapi.Int64Value{Value: *sc.RunAsUser}
	}
	if sc.RunAsGroup != nil && sc.RunAsUser != nil { // runtimes must reject a group without a user
		to.RunAsGroup = &runtimeapi.Int64Value{Value: *sc.RunAsGroup}
	}
	if sc.FSGroup != nil {
		to.SupplementalGroups = append(to.SupplementalGroups, *sc.FSGroup)
	}
	to.SupplementalGroups = append(append(to.SupplementalGroups, in.Groups...), sc.SupplementalGroups...)
	if to.SupplementalGroupsPolicy, err = groupsPolicy(sc); err != nil {
		return nil, err
	}
	to.SelinuxOptions = selinux(sc.SELinuxOptions)
	return lc, nil
}

// anyPrivileged reports whether any container of the pod, ephemeral ones included, is
// privileged.
func anyPrivileged(pod *v1.Pod) bool {
	privileged := func(sc *v1.SecurityContext) bool { return sc != nil && sc.Privileged != nil && *sc.Privileged }
	for c := range podspec.AllContainers(pod) {
		if privileged(c.SecurityContext) {
			return true
		}
	}
	return false
}

// portMappings returns the ports of the regular containers, without ports whose name or
// definition repeats (rule rt-19).
func portMappings(pod *v1.Pod) []*runtimeapi.PortMapping {
	var mappings []*runtimeapi.PortMapping
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		listed := map[string]bool{}
		for _, p := range c.Ports {
			name := p.Name
			if name == "" {
				name = portKey(p)
			}
			if listed[name] {
				continue
			}
			listed[name] = true
			mappings = append(mappings, &runtimeapi.PortMapping{
				Protocol: protocol(p.Protocol), ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
			})
		}
	}
	return mappings
}

// portKey returns a key for a port without a name.
func portKey(p v1.ContainerPort) string {
	family := "any"
	switch {
	case strings.Contains(p.HostIP, ":"):
		family = "v6"
	case p.HostIP != "":
		family = "v4"
	}
	return fmt.Sprintf("%s-%s-%s:%d:%d", family, p.Protocol, p.HostIP, p.ContainerPort, p.HostPort)
}

func protocol(p v1.Protocol) runtimeapi.Protocol {
	switch p {
	case v1.ProtocolUDP:
		return runtimeapi.Protocol_UDP
	case v1.ProtocolSCTP:
		return runtimeapi.Protocol_SCTP
	default:
		return runtimeapi.Protocol_TCP
	}
}

// podResources returns the resources of the pod without its overhead, including init
// containers and sidecars, for sandboxed runtimes (rule rt-23).
func podResources(in PodInput) *runtimeapi.LinuxContainerResources {
	opts := resource.PodResourcesOptions{ExcludeOverhead: true}
	limits := resource.PodLimits(in.Pod, opts)
	podspec.DeletePartial(in.Pod, limits)
	return PodResources(in, v1.ResourceRequirements{Requests: resource.PodRequests(in.Pod, opts), Limits: limits})
}

func overhead(n Node, pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	if len(pod.Spec.Overhead) == 0 {
		return &runtimeapi.LinuxContainerResources{}
	}
	return n.basic(pod.Spec.Overhead, pod.Spec.Overhead)
}
