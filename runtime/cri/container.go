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
)

// An imageUser is who an image says its containers run as.
type imageUser = podconfig.User

// input returns what the pod's sandbox and containers are made from, without
// what only a sandbox needs.
func (s *step) input(ctx context.Context) (podconfig.Input, error) {
	in := podconfig.Input{
		Pod: s.pod, Node: s.r.cfg.Node.facts(s.r.cfg.RootDir),
		LogDirectory: s.r.podLogDir(s.pod), CgroupParent: s.r.cfg.CgroupParent(s.pod),
		ExclusiveCPUs: s.r.exclusiveCPUs(s.pod),
	}
	if s.r.cfg.VolumeGroups != nil {
		in.Groups = s.r.cfg.VolumeGroups(s.pod)
	}
	var err error
	if in.Handler, err = s.handler(ctx); err != nil {
		return in, err
	}
	if users := s.pod.Spec.HostUsers; users != nil && !*users && in.Handler.UserNamespaces {
		if s.r.cfg.UserNamespaces == nil {
			return in, errors.New("hostUsers: false: no source of user IDs")
		}
		m, err := s.r.cfg.UserNamespaces.Allocate(s.pod.UID)
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

// handlerName returns the runtime handler of the pod's class (rt-20, se-13); ""
// is the runtime's default.
func (s *step) handlerName() (string, error) {
	class := s.pod.Spec.RuntimeClassName
	if class == nil || *class == "" {
		return "", nil
	}
	if s.r.cfg.RuntimeClass == nil {
		return "", fmt.Errorf("failed to get RuntimeClass %q: no source of runtime classes", *class)
	}
	name, err := s.r.cfg.RuntimeClass(*class)
	if err != nil {
		return "", fmt.Errorf("failed to get RuntimeClass %q: %w", *class, err)
	}
	return name, nil
}

// handler returns the handler of the pod's class. What it can do is asked only
// for a pod that needs to know.
func (s *step) handler(ctx context.Context) (podconfig.Handler, error) {
	name, err := s.handlerName()
	h := podconfig.Handler{Name: name}
	if err != nil {
		return h, err
	}
	if !podconfig.AsksHandler(s.pod) {
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

// containerConfig returns what an instance of container c is made from (sections
// 4.2, 4.10). It writes the files that are mounted into it.
func (s *step) containerConfig(ctx context.Context, c *v1.Container, restartCount int32, image *runtimeapi.ImageSpec, user imageUser) (*runtimeapi.ContainerConfig, error) {
	env, err := s.environment(ctx, c)
	if err != nil {
		return nil, err
	}
	in, err := s.input(ctx)
	if err != nil {
		return nil, err
	}
	inst := podconfig.Instance{
		Container: c, RestartCount: restartCount, Image: image, User: user, TargetID: s.targetID(c.Name),
	}
	inst.Env = env.EnvVars()
	if inst.Volumes, err = s.volumesOf(ctx, c, env); err != nil {
		return nil, err
	}
	if inst.BlockDevices, err = s.devicesOf(c); err != nil {
		return nil, err
	}
	if podconfig.WantsHosts(s.pod, c, s.ips) { // pe-14
		if inst.HostsFile, err = s.r.writeHosts(s.pod, s.ips); err != nil {
			return nil, err
		}
	}
	// Refused before a file is made that nothing would remove.
	if _, err := podconfig.Container(in, inst); err != nil {
		return nil, err
	}
	if c.TerminationMessagePath != "" {
		if inst.MessageFile, err = s.messageFile(c, restartCount); err != nil { // no reason not to run (rt-124)
			s.r.log.Warn("no file for a termination message", "pod", s.name(), "uid", s.pod.UID, "container", c.Name, "err", err)
		}
	}
	return podconfig.Container(in, inst)
}

// podIPs returns the addresses that the containers see as their own.
func (s *step) podIPs() []string {
	if s.pod.Spec.HostNetwork {
		return s.r.cfg.Node.IPs()
	}
	return s.ips
}

// targetID returns the runtime's ID of the container that the ephemeral one of
// that name looks into (rt-84), or "".
func (s *step) targetID(name string) string {
	for i := range s.pod.Spec.EphemeralContainers {
		e := &s.pod.Spec.EphemeralContainers[i]
		if e.Name != name || e.TargetContainerName == "" {
			continue
		}
		if target := s.status.Container(e.TargetContainerName); target != nil {
			return bare(target.ID)
		}
	}
	return ""
}

// containerSpec returns the spec of the named container, of any kind.
func containerSpec(pod *v1.Pod, name string) *v1.Container {
	return podspec.Container(pod, name)
}
