package volume

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// attachLimitTimeout bounds the reading of the attachments of a pod's volumes.
const attachLimitTimeout = 10 * time.Second

// checkAttachLimits sets the error of each volume in waiting that cannot be attached because the node
// has reached its limit of attached volumes. It is called after Config.WaitTimeout, so that the reads
// of attachments are rare, and the attach/detach controller has had the time to attach (rule vol-85).
func (m *Manager) checkAttachLimits(ctx context.Context, pod *v1.Pod, volumes []desiredVolume, waiting []*Error) {
	ctx, cancel := context.WithTimeout(ctx, attachLimitTimeout)
	defer cancel()
	for _, n := range waiting {
		if n.Phase != waitingAttach {
			continue
		}
		i := slices.IndexFunc(volumes, func(w desiredVolume) bool { return w.name == n.Volume })
		if i < 0 {
			continue
		}
		p, ok := compose.As[Attacher](volumes[i].plugin)
		if !ok {
			continue
		}
		exceeded, err := p.AttachLimitExceeded(ctx, volumes[i].spec)
		switch {
		case err != nil:
			m.log.Warn("Failed to read why a volume is not attached; the pod waits", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "volumeName", n.Volume, "err", err)
		case exceeded:
			n.Err = &runtime.Rejection{Reason: "VolumeAttachmentLimitExceeded", Message: "Node has reached its volume attachment limit, rejecting pod"}
		}
	}
}
