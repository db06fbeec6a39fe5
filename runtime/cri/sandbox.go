package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// sandboxConfig returns what a pod's sandbox is made from (section 4.3).
func (r *Runtime) sandboxConfig(pod *v1.Pod, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt,
		},
		Labels:       sandboxLabels(pod),
		Annotations:  pod.Annotations,
		LogDirectory: r.podLogDir(pod),
		PortMappings: portMappings(pod),
		Linux:        linuxSandbox(pod, r.cfg.CgroupParent(pod)),
	}
	if !pod.Spec.HostNetwork { // rt-18
		hostname, domain, err := hostnameOf(pod, r.cfg.DNS.ClusterDomain)
		if err != nil {
			return nil, err
		}
		config.Hostname = hostname
		if pod.Spec.SetHostnameAsFQDN != nil && *pod.Spec.SetHostnameAsFQDN && domain != "" {
			config.Hostname = hostname + "." + domain
			if len(config.Hostname) > 64 { // what a Linux kernel takes (pe-19)
				return nil, fmt.Errorf("hostname %q, as an FQDN, has more than 64 characters", config.Hostname)
			}
		}
	}
	dns, err := r.cfg.DNS.For(pod)
	if err != nil {
		return nil, err
	}
	config.DnsConfig = dns
	return config, nil
}

// createSandbox makes the pod's sandbox, and returns its ID.
func (s *step) createSandbox(ctx context.Context, attempt uint32) (id string, err error) {
	if err := supported(s.pod); err != nil {
		return "", err
	}
	config, err := s.r.sandboxConfig(s.pod, attempt)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil { // rt-17
		return "", err
	}
	s.config = config
	patient, done := finish(ctx)
	id, err = s.r.cfg.Runtime.RunPodSandbox(s.r.quiet(patient), config, "")
	done()
	if err == nil && id == "" {
		err = errors.New("the runtime gave no ID") // rt-147
	}
	if err != nil && ctx.Err() == nil {
		if made := s.sandboxMade(ctx, attempt); made != "" {
			return made, nil
		}
	}
	return id, err
}

// sandboxMade returns the pod's sandbox of that attempt if it is ready: the
// answer of the call that made it was lost, perhaps long ago.
func (s *step) sandboxMade(ctx context.Context, attempt uint32) string {
	sandboxes, _, err := s.r.list(ctx, s.pod.UID)
	if err != nil {
		return "" // the next sync looks again
	}
	for _, sb := range sandboxes {
		if sb.Metadata.Attempt == attempt && sb.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			return sb.Id
		}
	}
	return ""
}

// supported refuses what would weaken a pod if it were ignored.
func supported(pod *v1.Pod) error {
	if class := pod.Spec.RuntimeClassName; class != nil && *class != "" {
		// Classes are objects of a cluster; what maps one to a handler is not
		// wired (rt-20).
		return fmt.Errorf("failed to get RuntimeClass %q: no source of runtime classes", *class)
	}
	if pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers {
		return errors.New("hostUsers: false: user namespaces are not supported")
	}
	return nil
}

// portMappings returns the ports of the regular containers (rt-19).
func portMappings(pod *v1.Pod) []*runtimeapi.PortMapping {
	var mappings []*runtimeapi.PortMapping
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		seen := map[string]bool{}
		for _, p := range c.Ports {
			name := p.Name
			if name == "" {
				name = fmt.Sprintf("%s-%s:%d:%d", p.Protocol, p.HostIP, p.ContainerPort, p.HostPort)
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			mappings = append(mappings, &runtimeapi.PortMapping{
				Protocol: protocol(p.Protocol), ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
			})
		}
	}
	return mappings
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

// linuxSandbox returns the Linux part of the sandbox (rt-21 … rt-23).
func linuxSandbox(pod *v1.Pod, cgroupParent string) *runtimeapi.LinuxPodSandboxConfig {
	lc := &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent: cgroupParent,
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			Privileged:       anyPrivileged(pod),
			Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
			NamespaceOptions: podNamespaces(pod),
		},
		Resources: podResources(pod),
		Overhead:  overhead(pod),
	}
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return lc
	}
	for _, sysctl := range sc.Sysctls {
		if lc.Sysctls == nil {
			lc.Sysctls = map[string]string{}
		}
		lc.Sysctls[sysctlName(sysctl.Name)] = sysctl.Value
	}
	to := lc.SecurityContext
	if sc.RunAsUser != nil {
		to.RunAsUser = &runtimeapi.Int64Value{Value: *sc.RunAsUser}
	}
	if sc.RunAsGroup != nil {
		to.RunAsGroup = &runtimeapi.Int64Value{Value: *sc.RunAsGroup}
	}
	to.SupplementalGroups = supplementalGroups(pod)
	to.SupplementalGroupsPolicy = groupsPolicy(sc)
	to.SelinuxOptions = selinux(sc.SELinuxOptions)
	return lc
}

// sysctlName returns the name with dots. One that is written with slashes may
// have dots that mean themselves, as in net/ipv4/conf/eth0.1/forwarding: the two
// change places, which the runtime undoes.
func sysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

// podResources is what the pod asks for without its overhead, init containers
// and sidecars included: the CRI tells sandboxed runtimes of it (rt-23).
func podResources(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	opts := resource.PodResourcesOptions{ExcludeOverhead: true}
	return linuxResources(&v1.ResourceRequirements{
		Requests: resource.PodRequests(pod, opts), Limits: resource.PodLimits(pod, opts),
	})
}

func overhead(pod *v1.Pod) *runtimeapi.LinuxContainerResources {
	if len(pod.Spec.Overhead) == 0 {
		return &runtimeapi.LinuxContainerResources{}
	}
	return linuxResources(&v1.ResourceRequirements{Requests: pod.Spec.Overhead, Limits: pod.Spec.Overhead})
}

// existingSandbox takes the sandbox that is there already as the one to start
// containers in.
func (s *step) existingSandbox(p plan.Plan) error {
	config, err := s.r.sandboxConfig(s.pod, p.Attempt)
	if err != nil {
		return err
	}
	for _, sb := range s.status.Sandboxes {
		if sb.ID == p.SandboxID {
			config.Metadata.Attempt = sb.Attempt
		}
	}
	s.config = config
	return nil
}
