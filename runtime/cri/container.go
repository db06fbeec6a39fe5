package cri

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podenv"
)

// containerConfig returns what an instance of container c is made from (sections
// 4.2, 4.10). It writes the files that are mounted into it.
func (s *step) containerConfig(c *v1.Container, restartCount int32, image *runtimeapi.ImageSpec, user imageUser) (*runtimeapi.ContainerConfig, error) {
	env, err := podenv.Make(podenv.Facts{
		Pod: s.pod, PodIPs: s.podIPs(), HostIPs: s.r.cfg.Node.IPs(), Allocatable: s.r.cfg.Node.Allocatable,
	}, c)
	if err != nil {
		return nil, err
	}
	security, err := containerSecurity(s.pod, c, user, filepath.Join(s.r.cfg.RootDir, "seccomp"))
	if err != nil {
		return nil, err
	}
	if err := s.joinTarget(c, security); err != nil {
		return nil, err
	}
	mounts, err := s.mounts(c, env)
	if err != nil {
		return nil, err
	}
	devices, err := s.devices(c)
	if err != nil {
		return nil, err
	}
	resources := linuxResources(&c.Resources)
	resources.OomScoreAdj = oomScoreAdj(s.pod, c, s.r.cfg.Node.MemoryBytes)
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(restartCount)},
		Image:       image,
		Command:     env.ExpandAll(c.Command),
		Args:        env.ExpandAll(c.Args),
		WorkingDir:  c.WorkingDir,
		Labels:      containerLabels(s.pod, c),
		Annotations: containerAnnotations(s.pod, c, restartCount),
		Mounts:      mounts,
		Devices:     devices,
		LogPath:     filepath.Join(c.Name, logName(uint32(restartCount))),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: resources, SecurityContext: security},
	}
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		config.StopSignal = signal(*c.Lifecycle.StopSignal)
	}
	for _, v := range env.Vars() {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	return config, nil
}

// signal returns the CRI's name of a signal, SIGNAL_SIGRTMINPLUS1 for SIGRTMIN+1;
// for one that it does not have, the runtime's default.
func signal(s v1.Signal) runtimeapi.Signal {
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(s))
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}

// podIPs returns the addresses that the containers see as their own.
func (s *step) podIPs() []string {
	if s.pod.Spec.HostNetwork {
		return s.r.cfg.Node.IPs()
	}
	return s.ips
}

// joinTarget lets an ephemeral container see the processes of its target
// (rt-84).
func (s *step) joinTarget(c *v1.Container, security *runtimeapi.LinuxContainerSecurityContext) error {
	for i := range s.pod.Spec.EphemeralContainers {
		e := &s.pod.Spec.EphemeralContainers[i]
		if e.Name != c.Name || e.TargetContainerName == "" {
			continue
		}
		target := s.status.Container(e.TargetContainerName)
		if target == nil {
			return fmt.Errorf("unable to find target container %v", e.TargetContainerName)
		}
		if security.NamespaceOptions.Pid == runtimeapi.NamespaceMode_CONTAINER {
			security.NamespaceOptions.Pid = runtimeapi.NamespaceMode_TARGET
			security.NamespaceOptions.TargetId = bare(target.ID)
		}
	}
	return nil
}

// containerSpec returns the spec of the named container, of any kind.
func containerSpec(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return (*v1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		}
	}
	return nil
}
