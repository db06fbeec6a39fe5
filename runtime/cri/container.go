package cri

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// An imageUser is the default user of an image.
type imageUser = podconfig.User

// input returns the common input of the pod's sandbox and containers.
func (s *podSync) input(ctx context.Context) (podconfig.PodInput, error) {
	in := podconfig.PodInput{
		Pod: s.pod, Node: s.r.cfg.Node.facts(s.r.cfg.Dirs.Root),
		LogDirectory:  s.r.podLogDir(s.pod),
		ExclusiveCPUs: s.r.exclusiveCPUs(s.pod),
	}
	if s.r.cfg.Providers.Cgroups != nil {
		in.CgroupParent = s.r.cfg.Providers.Cgroups.CgroupParent(s.pod)
	}
	if s.r.cfg.Providers.Volumes != nil {
		in.Groups = s.r.cfg.Providers.Volumes.Groups(s.pod)
	}
	var err error
	if in.Handler, err = s.handler(ctx); err != nil {
		return in, err
	}
	if users := s.pod.Spec.HostUsers; users != nil && !*users && in.Handler.UserNamespaces {
		if s.r.cfg.Providers.UserNamespaces == nil {
			return in, errors.New("hostUsers: false: Providers.UserNamespaces is nil")
		}
		m, err := s.r.cfg.Providers.UserNamespaces.Allocate(s.pod.UID)
		if err != nil {
			return in, err
		}
		in.UserNamespace = &runtimeapi.UserNamespace{Uids: idMappings(m.UIDs), Gids: idMappings(m.GIDs)}
	}
	return in, nil
}

func idMappings(list []userns.Mapping) []*runtimeapi.IDMapping {
	var out []*runtimeapi.IDMapping
	for _, m := range list {
		out = append(out, &runtimeapi.IDMapping{HostId: m.HostID, ContainerId: m.ContainerID, Length: m.Length})
	}
	return out
}

func mappings(list []*runtimeapi.IDMapping) []userns.Mapping {
	var out []userns.Mapping
	for _, m := range list {
		out = append(out, userns.Mapping{HostID: m.GetHostId(), ContainerID: m.GetContainerId(), Length: m.GetLength()})
	}
	return out
}

// handlerName returns the runtime handler of the pod's class; "" is the runtime's
// default.
func (s *podSync) handlerName() (string, error) {
	class := s.pod.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	if s.r.cfg.Providers.RuntimeClass == nil {
		return "", fmt.Errorf("failed to get RuntimeClass %q: Providers.RuntimeClass is nil", *class)
	}
	return s.r.cfg.Providers.RuntimeClass(*class)
}

// handler returns the runtime handler of the pod's class, with its features only if the
// pod depends on them.
func (s *podSync) handler(ctx context.Context) (podconfig.RuntimeHandler, error) {
	name, err := s.handlerName()
	h := podconfig.RuntimeHandler{Name: name}
	if err != nil {
		return h, err
	}
	if !podconfig.DependsOnHandler(s.pod) {
		return h, nil
	}
	answer, err := s.r.cfg.Runtime.Status(s.r.quiet(ctx), false)
	if err != nil {
		return h, fmt.Errorf("cri: runtime status: %w", err)
	}
	for _, of := range answer.GetRuntimeHandlers() {
		if of.GetName() == h.Name {
			h.UserNamespaces = of.GetFeatures().GetUserNamespaces()
			h.RecursiveReadOnly = of.GetFeatures().GetRecursiveReadOnlyMounts()
		}
	}
	return h, nil
}

// containerConfig returns the configuration of an instance of container c, and writes
// the files that are mounted into it.
func (s *podSync) containerConfig(ctx context.Context, c *v1.Container, restartCount int32, image *runtimeapi.ImageSpec, user imageUser) (*runtimeapi.ContainerConfig, error) {
	env, err := s.environment(ctx, c)
	if err != nil {
		return nil, err
	}
	s.env = map[string]*podenv.Env{c.Name: env}
	in, err := s.input(ctx)
	if err != nil {
		return nil, err
	}
	inst := podconfig.ContainerInput{
		Container: c, RestartCount: restartCount, Image: image, User: user, TargetID: s.targetID(c.Name),
	}
	inst.Env = env.EnvVars()
	if inst.Volumes, err = s.volumesOf(ctx, c, env); err != nil {
		return nil, err
	}
	if inst.BlockDevices, err = s.devicesOf(c); err != nil {
		return nil, err
	}
	ips := s.ips
	if s.unaddressed {
		ips = unknownIPs
	}
	if podconfig.NeedsHostsFile(s.pod, c, ips) {
		if inst.HostsFile, err = s.r.writeHosts(s.pod, s.ips); err != nil {
			return nil, err
		}
	}
	// An invalid configuration fails before the termination message file is created.
	if _, err := podconfig.Container(in, inst); err != nil {
		return nil, err
	}
	if c.TerminationMessagePath != "" {
		if inst.MessageFile, err = s.messageFile(c, restartCount); err != nil { // the container can run without it
			s.r.log.Warn("Failed to create termination message file, the container starts without it", "pod", s.pod.Namespace+"/"+s.pod.Name, "podUID", s.pod.UID, "containerName", c.Name, "err", err)
		}
	}
	return podconfig.Container(in, inst)
}

// podIPs returns the addresses of the pod, those of the node in the host network.
func (s *podSync) podIPs() []string {
	if s.pod.Spec.HostNetwork {
		return s.r.cfg.Node.IPs()
	}
	return s.ips
}

// targetID returns the runtime's ID of the target of the named ephemeral container, or
// "".
func (s *podSync) targetID(name string) string {
	for i := range s.pod.Spec.EphemeralContainers {
		e := &s.pod.Spec.EphemeralContainers[i]
		if e.Name != name || e.TargetContainerName == "" {
			continue
		}
		if target := s.status.Container(e.TargetContainerName); target != nil {
			return runtimeID(target.ID)
		}
	}
	return ""
}

// containerSpec returns the spec of the named container of any kind, or nil.
func containerSpec(pod *v1.Pod, name string) *v1.Container {
	return podspec.Container(pod, name)
}
