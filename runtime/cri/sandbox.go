package cri

import (
	"context"
	"errors"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// sandboxConfig returns what a pod's sandbox is made from (section 4.3), and the
// name of the handler that runs it.
func (s *step) sandboxConfig(ctx context.Context, attempt uint32) (config *runtimeapi.PodSandboxConfig, handler string, err error) {
	in, err := s.input(ctx)
	if err != nil {
		return nil, "", err
	}
	if in.Hostname, err = s.r.hostname(s.pod); err != nil {
		return nil, "", err
	}
	if in.DNS, err = s.r.cfg.DNS.For(s.pod); err != nil {
		return nil, "", err
	}
	config, err = podconfig.Sandbox(in, attempt)
	return config, in.Handler.Name, err
}

// hostname returns the pod's hostname as the kernel is to have it: the FQDN if
// the pod asks for that (pe-19). Pods of the host's network have the host's.
func (r *Runtime) hostname(pod *v1.Pod) (string, error) {
	if pod.Spec.HostNetwork {
		return "", nil
	}
	hostname, domain, err := hostnameOf(pod, r.cfg.DNS.ClusterDomain)
	if err != nil || pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN || domain == "" {
		return hostname, err
	}
	if hostname += "." + domain; len(hostname) > 64 { // what a Linux kernel takes
		return "", fmt.Errorf("hostname %q, as an FQDN, has more than 64 characters", hostname)
	}
	return hostname, nil
}

// createSandbox makes the pod's sandbox, and returns its ID.
func (s *step) createSandbox(ctx context.Context, attempt uint32) (id string, err error) {
	config, handler, err := s.sandboxConfig(ctx, attempt)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil { // rt-17
		return "", err
	}
	s.config = config
	patient, done := finish(ctx)
	id, err = s.r.cfg.Runtime.RunPodSandbox(s.r.quiet(patient), config, handler)
	done()
	if err == nil && id == "" {
		err = errors.New("the runtime gave no ID") // rt-147
	}
	if err != nil && ctx.Err() == nil {
		if made := s.sandboxMade(ctx, attempt); made != "" {
			return made, nil
		}
	}
	s.fresh = err == nil && len(s.status.Containers) == 0
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

// existingSandbox takes the sandbox that is there already as the one to start
// containers in.
func (s *step) existingSandbox(ctx context.Context, p plan.Plan) error {
	config, _, err := s.sandboxConfig(ctx, p.Attempt)
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
