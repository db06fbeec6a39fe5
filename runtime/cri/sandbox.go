package cri

import (
	"context"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// sandboxConfig returns what a pod's sandbox is made from (section 4.3), the name
// of the handler that runs it, and what there is to say of its DNS configuration.
func (s *podSync) sandboxConfig(ctx context.Context, attempt uint32) (*runtimeapi.PodSandboxConfig, string, podconfig.PodDNS, error) {
	in, err := s.input(ctx)
	if err != nil {
		return nil, "", podconfig.PodDNS{}, err
	}
	if in.Hostname, err = podconfig.SandboxHostname(s.pod, s.r.cfg.Node.DNS.ClusterDomain); err != nil {
		return nil, "", podconfig.PodDNS{}, err
	}
	dns, err := s.r.podDNS(s.pod)
	if err != nil {
		return nil, "", podconfig.PodDNS{}, err
	}
	in.DNS = dns.Config
	config, err := podconfig.Sandbox(in, attempt)
	return config, in.Handler.Name, dns, err
}

// createSandbox makes the pod's sandbox, and returns its ID.
func (s *podSync) createSandbox(ctx context.Context, p plan.Plan) (id string, err error) {
	config, handler, dns, err := s.sandboxConfig(ctx, p.Attempt)
	if err != nil {
		return "", err
	}
	s.recordDNSWarnings(dns)
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil { // rt-17
		return "", err
	}
	s.config = config
	if s.r.cfg.Pulls.Ahead {
		s.pullAhead(ctx, p.Start)
	}
	patient, done := finishContext(ctx)
	id, err = s.r.cfg.Runtime.RunPodSandbox(s.r.quiet(patient), config, handler)
	done()
	if err != nil && ctx.Err() == nil {
		if made := s.sandboxMade(ctx, p.Attempt); made != "" {
			return made, nil
		}
	}
	s.fresh = err == nil && len(s.status.Containers) == 0
	return id, err
}

// sandboxMade returns the pod's sandbox of that attempt if it is ready: the
// answer of the call that made it was lost, perhaps long ago.
func (s *podSync) sandboxMade(ctx context.Context, attempt uint32) string {
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
func (s *podSync) existingSandbox(ctx context.Context, p plan.Plan) error {
	config, _, _, err := s.sandboxConfig(ctx, p.Attempt)
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
