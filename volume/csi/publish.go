package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// SetUp implements volume.Plugin: the driver publishes the volume for the pod. It returns an error unless
// NodePublishVolume returns OK.
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	mounted, err := p.setUp(ctx, &req)
	if err != nil {
		return volume.SetUpResult{}, fmt.Errorf("csi: %w", err)
	}
	return mounted, nil
}

func (p *Plugin) setUp(ctx context.Context, req *volume.Request) (volume.SetUpResult, error) {
	var none volume.SetUpResult
	d, err := p.driver(driverOf(req.Spec))
	if err != nil {
		return none, err
	}
	about, err := p.about(ctx, d.Name)
	if err != nil {
		return none, err
	}
	mode, err := lifecycle(req.Spec, d.Name, about)
	if err != nil {
		return none, err
	}
	publish, due, err := p.publishRequest(ctx, req)
	if err != nil {
		return none, err
	}
	again := about != nil && about.RequiresRepublish != nil && *about.RequiresRepublish
	p.mu.Lock()
	p.again[d.Name] = again
	p.mu.Unlock()
	if !again {
		due = time.Time{} // the driver does not require republishing, even if tokens expire
	}
	target, dataDir := p.publishTarget(req.Place)
	mounted := volume.SetUpResult{Volume: runtime.Volume{Path: target, ReadOnly: publish.Readonly}, RefreshAt: due}
	if req.Spec.Block {
		mounted.Volume = runtime.Volume{Device: req.Dir(), ReadOnly: publish.Readonly}
	}
	mounted.SELinuxRelabel = relabels(req, publish.Readonly)
	saved := data{
		SpecVolID: req.Spec.DirName(), VolumeHandle: publish.VolumeId, DriverName: d.Name, NodeName: p.cfg.NodeName,
		AttachmentID: attachmentName(publish.VolumeId, d.Name, p.cfg.NodeName), VolumeLifecycleMode: mode,
		SELinuxMountContext: req.SELinuxLabel,
	}
	before, err := load(dataDir)
	if err != nil {
		before = data{}
	}
	if saved.Staged = before.Staged; req.Spec.Block && errors.Is(err, fs.ErrNotExist) {
		saved.Staged = notStaged // Stage, which writes the same file, has not called the driver
	}
	// A mount at the target does not show that the volume is published: a call that
	// failed may have made it. The data shows that an earlier SetUp completed; it does
	// not count without the mount, after a restart of the machine.
	finished := false
	if before.Published != "" {
		there, err := p.cfg.Mounter.IsMountPoint(target)
		finished = err == nil && there
	}
	if finished {
		saved.Published = before.Published
	}
	if saved != before {
		if err := save(dataDir, saved); err != nil {
			return none, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return none, err
	}
	own := false
	err = p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		can, err := capabilitiesOf(ctx, node)
		if err != nil {
			return err
		}
		own = walks(req.Spec, about, can, publish.Readonly)
		publish.VolumeCapability = capability(req.Spec, can, req.MountOptions, req.FSGroup)
		if req.Spec.PV != nil && can[csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
			publish.StagingTargetPath = p.stagedAt(req)
		}
		_, err = node.NodePublishVolume(ctx, publish)
		return err
	})
	if err != nil {
		return none, fmt.Errorf("NodePublishVolume: %w", err)
	}
	if own && !req.Refresh && !req.Spec.Block {
		if err := p.own(ctx, req, target, finished); err != nil { // may take longer than a call
			return none, err
		}
	}
	if !req.Spec.Block && !finished { // the data of a device is shared by its pods
		saved.Published = "true"
		if err := save(dataDir, saved); err != nil {
			return none, err
		}
	}
	return mounted, p.linkDevice(req, target)
}

// own sets the group of the volume's files. Containers may use a volume that an earlier
// agent published: the ownership is changed again only if the root directory, which is changed last,
// shows that the change was interrupted.
func (p *Plugin) own(ctx context.Context, req *volume.Request, target string, finished bool) error {
	of := *req
	if finished {
		of.FSGroupPolicy = new(v1.FSGroupChangeOnRootMismatch)
	}
	return of.SetOwnership(ctx, target, false)
}

// publishRequest returns the request without the fields that depend on the driver's capabilities, and the
// time at which its tokens must be replaced.
func (p *Plugin) publishRequest(ctx context.Context, req *volume.Request) (*csipb.NodePublishVolumeRequest, time.Time, error) {
	var due time.Time
	name := driverOf(req.Spec)
	about, err := p.about(ctx, name)
	if err != nil {
		return nil, due, err
	}
	target, _ := p.publishTarget(req.Place)
	publish := &csipb.NodePublishVolumeRequest{VolumeId: handleOf(req), TargetPath: target, VolumeContext: attributes(req.Spec)}
	if pv := req.Spec.PV; pv != nil {
		publish.Readonly = req.Spec.ReadOnly || pv.Spec.CSI.ReadOnly
		if publish.PublishContext, err = p.publishContext(ctx, req.Spec); err != nil {
			return nil, due, err
		}
		publish.Secrets, err = p.refSecrets(ctx, "NodePublishSecretRef", pv.Spec.CSI.NodePublishSecretRef)
	} else {
		from := req.Spec.Volume.CSI
		publish.Readonly = from.ReadOnly != nil && *from.ReadOnly
		if ref := from.NodePublishSecretRef; ref != nil {
			publish.Secrets, err = p.secrets(ctx, "NodePublishSecretRef", req.Pod.Namespace, ref.Name)
		}
	}
	if err != nil || about == nil {
		return publish, due, err
	}
	if about.PodInfoOnMount != nil && *about.PodInfoOnMount {
		maps.Copy(publish.VolumeContext, podInfo(req.Pod, req.Spec.PV == nil))
	}
	tokens, due, err := p.tokens(ctx, req.Pod, about.TokenRequests)
	if err != nil || tokens == "" {
		return publish, due, err
	}
	into := &publish.VolumeContext
	if about.ServiceAccountTokenInSecrets != nil && *about.ServiceAccountTokenInSecrets {
		into = &publish.Secrets
	}
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[tokensKey] = tokens
	return publish, due, nil
}

// linkDevice creates the symbolic link to the device of a block volume.
func (p *Plugin) linkDevice(req *volume.Request, target string) error {
	if !req.Spec.Block {
		return nil
	}
	at := req.Dir()
	if got, err := os.Readlink(at); err == nil && got == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, at)
}

// TearDown implements volume.Plugin: the driver unpublishes the volume that vol_data.json describes.
// Without that file no volume was published.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := p.tearDown(ctx, at); err != nil {
		return fmt.Errorf("csi: %w", err)
	}
	return nil
}

func (p *Plugin) tearDown(ctx context.Context, at volume.Place) error {
	target, dataDir := p.publishTarget(at)
	switch d, err := load(dataDir); {
	case errors.Is(err, fs.ErrNotExist):
		// Nothing was published, or the data was lost: mounts are removed, their content is
		// not.
		if mounted, err := p.cfg.Mounter.IsMountPoint(target); err == nil && mounted {
			if err := p.cfg.Mounter.Unmount(target); err != nil {
				return err
			}
		}
	case err != nil:
		return err
	default:
		driver, err := p.driver(d.DriverName)
		if err != nil {
			return err
		}
		err = p.call(ctx, driver, func(ctx context.Context, node csipb.NodeClient) error {
			_, err := node.NodeUnpublishVolume(ctx, &csipb.NodeUnpublishVolumeRequest{VolumeId: d.VolumeHandle, TargetPath: target})
			return err
		})
		if err != nil {
			return fmt.Errorf("NodeUnpublishVolume: %w", err)
		}
	}
	if err := p.removeDir(target); err != nil {
		return err
	}
	if at.Block {
		if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(filepath.Dir(target)) // fails unless this was the last pod
		return nil                          // the data of a device is shared by all pods; Unstage removes it
	}
	return removeData(dataDir)
}
