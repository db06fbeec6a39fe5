package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/token"
)

// about returns the CSIDriver of a driver; nil if there is none.
func (p *Plugin) about(ctx context.Context, driver string) (*storagev1.CSIDriverSpec, error) {
	if p.cfg.Drivers == nil {
		return nil, nil
	}
	d, err := p.cfg.Drivers.CSIDriver(ctx, driver)
	if err != nil && podenv.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get CSIDriver %s: %w", driver, err)
	}
	return &d.Spec, nil
}

// NeedsAttach implements volume.Attacher: persistent volumes must be attached unless the driver's
// CSIDriver specifies otherwise or there is no API server.
func (p *Plugin) NeedsAttach(ctx context.Context, spec *volume.Spec) (bool, error) {
	if spec.PV == nil || p.cfg.Drivers == nil {
		return false, nil
	}
	about, err := p.about(ctx, driverOf(spec))
	if err != nil {
		return false, fmt.Errorf("csi: %w", err)
	}
	return about == nil || about.AttachRequired == nil || *about.AttachRequired, nil
}

// publishContext returns the attachment metadata of the volume; nil if it need not be attached.
func (p *Plugin) publishContext(ctx context.Context, spec *volume.Spec) (map[string]string, error) {
	needs, err := p.NeedsAttach(ctx, spec)
	if err != nil || !needs {
		return nil, err
	}
	from := spec.PV.Spec.CSI
	name := attachmentName(from.VolumeHandle, from.Driver, p.cfg.NodeName)
	attachment, err := p.cfg.Drivers.VolumeAttachment(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("get VolumeAttachment %s: %w", name, err)
	}
	if !attachment.Status.Attached {
		return nil, fmt.Errorf("VolumeAttachment %s: the volume is not attached yet", name)
	}
	return attachment.Status.AttachmentMetadata, nil
}

// secrets returns the data of the referenced Secret.
func (p *Plugin) secrets(ctx context.Context, what, namespace, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	if p.cfg.Objects == nil {
		return nil, fmt.Errorf("fetching %s %s/%s failed: no kubeClient defined", what, namespace, name)
	}
	secret, err := p.cfg.Objects.Secret(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("fetching %s %s/%s failed: %w", what, namespace, name, err)
	}
	values := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, nil
}

func (p *Plugin) refSecrets(ctx context.Context, what string, ref *v1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	return p.secrets(ctx, what, ref.Namespace, ref.Name)
}

// podInfo returns the volume context of a CSIDriver with PodInfoOnMount.
func podInfo(pod *v1.Pod, inline bool) map[string]string {
	return map[string]string{
		"csi.storage.k8s.io/pod.name":            pod.Name,
		"csi.storage.k8s.io/pod.namespace":       pod.Namespace,
		"csi.storage.k8s.io/pod.uid":             string(pod.UID),
		"csi.storage.k8s.io/serviceAccount.name": pod.Spec.ServiceAccountName,
		"csi.storage.k8s.io/ephemeral":           strconv.FormatBool(inline),
	}
}

const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// tokens returns the tokens that the CSIDriver requests, as JSON by audience, and the time at which they
// must be replaced.
func (p *Plugin) tokens(ctx context.Context, pod *v1.Pod, requests []storagev1.TokenRequest) (string, time.Time, error) {
	if len(requests) == 0 {
		return "", time.Time{}, nil
	}
	if p.cfg.Tokens == nil {
		return "", time.Time{}, errors.New("failed to fetch token: nothing here gives tokens of service accounts")
	}
	type status struct {
		Token               string      `json:"token"`
		ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`
	}
	all := map[string]status{}
	var due time.Time
	for _, r := range requests {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: r.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}
		if r.Audience != "" {
			request.Spec.Audiences = []string{r.Audience}
		}
		t, err := p.cfg.Tokens.Token(ctx, pod.Namespace, pod.Spec.ServiceAccountName, request)
		if err != nil {
			return "", time.Time{}, err
		}
		all[r.Audience] = status{t.Value, metav1.NewTime(t.Expiration)}
		due = earlier(due, t)
	}
	out, err := json.Marshal(all)
	return string(out), due, err
}

func earlier(due time.Time, t token.Token) time.Time {
	if due.IsZero() || t.RefreshAt.Before(due) {
		return t.RefreshAt
	}
	return due
}

// capability returns the volume capability of a request.
func capability(spec *volume.Spec, can capabilities, options []string, group *int64) *csipb.VolumeCapability {
	c := &csipb.VolumeCapability{AccessMode: &csipb.VolumeCapability_AccessMode{Mode: accessMode(spec, can)}}
	if spec.Block {
		c.AccessType = &csipb.VolumeCapability_Block{Block: new(csipb.VolumeCapability_BlockVolume)}
		return c
	}
	m := &csipb.VolumeCapability_MountVolume{FsType: fsType(spec), MountFlags: options}
	if group != nil && can[csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP] {
		m.VolumeMountGroup = strconv.FormatInt(*group, 10)
	}
	c.AccessType = &csipb.VolumeCapability_Mount{Mount: m}
	return c
}

func fsType(spec *volume.Spec) string {
	switch {
	case spec.PV != nil:
		return spec.PV.Spec.CSI.FSType
	case spec.Volume.CSI.FSType != nil:
		return *spec.Volume.CSI.FSType
	}
	return ""
}

// accessMode returns the volume's first access mode. Drivers with the capability
// SINGLE_NODE_MULTI_WRITER get the more specific modes.
func accessMode(spec *volume.Spec, can capabilities) csipb.VolumeCapability_AccessMode_Mode {
	mode := v1.ReadWriteOnce
	if spec.PV != nil && len(spec.PV.Spec.AccessModes) > 0 {
		mode = spec.PV.Spec.AccessModes[0]
	}
	multi := can[csipb.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
	switch {
	case mode == v1.ReadWriteMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == v1.ReadOnlyMany:
		return csipb.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == v1.ReadWriteOncePod && multi:
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case spec.PV != nil && multi:
		return csipb.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return csipb.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

// walks reports whether the agent, not the driver, sets the ownership of a volume's files.
func walks(spec *volume.Spec, about *storagev1.CSIDriverSpec, can capabilities, readOnly bool) bool {
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if about != nil && about.FSGroupPolicy != nil {
		policy = *about.FSGroupPolicy
	}
	switch {
	case readOnly, can[csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP], policy == storagev1.NoneFSGroupPolicy:
		return false
	case policy == storagev1.FileFSGroupPolicy:
		return true
	case fsType(spec) == "":
		return false
	case spec.PV == nil:
		return true // inline volumes belong to one pod
	}
	return slices.Contains(spec.PV.Spec.AccessModes, v1.ReadWriteOnce) || slices.Contains(spec.PV.Spec.AccessModes, v1.ReadWriteOncePod)
}

// relabels reports whether the runtime gives the volume's files the label of a container:
// not if the mount has a label, and not if the pod cannot write to them.
func relabels(req *volume.Request, readOnly bool) bool {
	return req.SELinuxLabel == "" && !readOnly && !req.Spec.Block
}

// lifecycle returns the lifecycle mode of a volume, or an error if the driver does not support it.
func lifecycle(spec *volume.Spec, driver string, about *storagev1.CSIDriverSpec) (string, error) {
	mode := storagev1.VolumeLifecyclePersistent
	if spec.PV == nil {
		mode = storagev1.VolumeLifecycleEphemeral
	}
	if about == nil || slices.Contains(about.VolumeLifecycleModes, mode) ||
		len(about.VolumeLifecycleModes) == 0 && mode == storagev1.VolumeLifecyclePersistent {
		return string(mode), nil
	}
	return "", fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, driver, about.VolumeLifecycleModes)
}

// attributes returns a copy of the volume attributes.
func attributes(spec *volume.Spec) map[string]string {
	var of map[string]string
	if spec.PV != nil {
		of = spec.PV.Spec.CSI.VolumeAttributes
	} else {
		of = spec.Volume.CSI.VolumeAttributes
	}
	all := map[string]string{}
	maps.Copy(all, of)
	return all
}
