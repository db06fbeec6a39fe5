package cri

import (
	"context"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// sandboxConfig returns the configuration of a pod's sandbox, its runtime handler, and
// its DNS configuration with warnings.
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

// createSandbox creates or restores the pod's sandbox and returns its ID.
func (s *podSync) createSandbox(ctx context.Context, p plan.Plan) (id string, err error) {
	config, handler, dns, err := s.sandboxConfig(ctx, p.Attempt)
	if err != nil {
		return "", err
	}
	s.recordDNSWarnings(dns)
	if err := s.r.cfg.Providers.Ledger.Own(s.pod.UID); err != nil { // before anything exists that only its owner removes
		return "", err
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return "", err
	}
	s.config = config
	run := func(ctx context.Context) (string, error) { return s.r.cfg.Runtime.RunPodSandbox(ctx, config, handler) }
	if p.Restore != "" {
		req, err := s.restoreRequest(ctx, p, handler)
		if err != nil {
			return "", err
		}
		run = func(ctx context.Context) (string, error) { return s.restorePod(ctx, req) }
	} else if s.r.cfg.Pulls.Ahead {
		s.pullAhead(ctx, p.Start)
	}
	kind := runSandbox
	if s.pod.Spec.HostNetwork {
		kind = runHostSandbox
	}
	turn, err := s.awaitTurn(ctx, kind, "CreatePodSandbox", "")
	if err != nil {
		return "", err
	}
	patient, done := finishContext(ctx)
	id, err = run(s.r.quiet(patient))
	done()
	if p.Restore != "" {
		turn.end(errNotMade) // its duration depends on the size of the checkpoint
	}
	turn.end(err)
	if err != nil && ctx.Err() == nil {
		if id := s.findSandbox(ctx, p.Attempt); id != "" {
			return id, nil
		}
	}
	s.fresh = err == nil && len(s.status.Containers) == 0
	return id, err
}

// findSandbox returns the ID of the pod's sandbox with the attempt if it is ready: the
// response of the call that created it was lost.
func (s *podSync) findSandbox(ctx context.Context, attempt uint32) string {
	sandboxes, containers, err := s.r.list(ctx, s.pod.UID)
	if err != nil {
		return "" // the next sync lists again
	}
	for _, sb := range sandboxes {
		if sb.Metadata.Attempt == attempt && sb.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			s.foundRestored(sb.Id, containers)
			return sb.Id
		}
	}
	return ""
}

// existingSandbox sets the configuration of the existing sandbox, for containers started
// in it.
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
