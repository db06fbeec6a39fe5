package csitest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/internal/plugintest"
)

// A Driver is a CSI driver. The fields of the first group are required. Safe for concurrent use.
type Driver struct {
	// Name is the name of the driver, Dir the directory of its volumes, and Mounter publishes
	// them.
	Name    string
	Dir     string
	Mounter mount.Interface

	// Devices are device paths by volume ID. A volume published as a block device is the
	// device, or an empty file if there is none.
	Devices map[string]string

	// NodeID is the ID of the node. Empty means "node-of-" and the name of the driver.
	NodeID string

	// MaxVolumes is the maximum number of volumes on the node. 0 means no limit.
	MaxVolumes int64

	// Without are the capabilities that the driver does not have; it has all others.
	Without []csipb.NodeServiceCapability_RPC_Type

	// Versions are the reported versions. Nil means 1.0.0.
	Versions []string

	// Before is called before each call of the node service, such as "NodeStageVolume" for a
	// volume; the ID of the volume is empty for NodeGetInfo and NodeGetCapabilities. It may block, as
	// a driver does that does not answer. If nil, nothing is called.
	Before func(method, volume string)

	csipb.UnimplementedNodeServer
	csipb.UnimplementedIdentityServer

	// mu guards the fields below.
	mu        sync.Mutex
	volumes   map[string]*Volume
	fail      map[string]error
	failAfter map[string]lateFailure
	unwell    map[string]string

	registration plugintest.Registration
}

// A Volume is the state of a volume in the driver. It is a copy.
type Volume struct {
	// Staged is the staging path, empty if the volume is not staged; Stage is the request.
	Staged string
	Stage  *csipb.NodeStageVolumeRequest

	// Published are the publish requests by target path.
	Published map[string]*csipb.NodePublishVolumeRequest

	// Size is the size to which the volume was expanded, in bytes.
	Size int64

	// Stages, Unstages and Publishes count the calls that succeeded.
	Stages, Unstages, Publishes int
}

// Run serves the driver at root/plugins/NAME/csi.sock, and its registration at
// root/plugins_registry/NAME-reg.sock, until ctx is done.
func (d *Driver) Run(ctx context.Context, root string) error {
	var sockets plugintest.Sockets
	defer sockets.Stop()
	if err := sockets.Serve(d.socket(root), func(s *grpc.Server) {
		csipb.RegisterNodeServer(s, d)
		csipb.RegisterIdentityServer(s, d)
	}, grpc.UnaryInterceptor(d.before)); err != nil {
		return err
	}
	versions := d.Versions
	if versions == nil {
		versions = []string{"1.0.0"}
	}
	if err := d.registration.Register(&sockets, filepath.Join(root, "plugins_registry", d.Name+"-reg.sock"), &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: d.Name, Endpoint: d.socket(root), SupportedVersions: versions,
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (d *Driver) socket(root string) string {
	return filepath.Join(root, "plugins", d.Name, "csi.sock")
}

// before is the interceptor that calls Before.
func (d *Driver) before(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if _, node := strings.CutPrefix(info.FullMethod, "/csi.v1.Node/"); node && d.Before != nil {
		volume := ""
		if r, ok := req.(interface{ GetVolumeId() string }); ok {
			volume = r.GetVolumeId()
		}
		d.Before(path.Base(info.FullMethod), volume)
	}
	return handle(ctx, req)
}

// SetMaxVolumes changes MaxVolumes while the driver runs.
func (d *Driver) SetMaxVolumes(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.MaxVolumes = n
}

// Fail makes calls of a method, such as "NodePublishVolume", fail with err from now on;
// nil stops this.
func (d *Driver) Fail(method string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		d.fail = map[string]error{}
	}
	d.fail[method] = err
}

// FailAfter makes the next calls of NodeStageVolume, NodeUnstageVolume or NodePublishVolume do their
// work and then fail with err, as a driver does whose response is late or lost. Zero times stops this.
// Such calls are not counted in the fields of Volume.
func (d *Driver) FailAfter(method string, err error, times int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failAfter == nil {
		d.failAfter = map[string]lateFailure{}
	}
	d.failAfter[method] = lateFailure{err: err, times: times}
}

// A lateFailure is an error that calls return after their work is done.
type lateFailure struct {
	err   error
	times int
}

// failAfterLocked returns the error of a call whose work is done, or nil.
func (d *Driver) failAfterLocked(method string) error {
	f := d.failAfter[method]
	if f.times <= 0 {
		return nil
	}
	f.times--
	d.failAfter[method] = f
	return f.err
}

// Unwell makes a volume degraded, with the reason "Unwell" and the message; "" makes it healthy.
func (d *Driver) Unwell(volume, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unwell == nil {
		d.unwell = map[string]string{}
	}
	d.unwell[volume] = message
}

// Volume returns the state of a volume.
func (d *Driver) Volume(id string) Volume {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := *d.volumeLocked(id)
	v.Published = maps.Clone(v.Published)
	return v
}

// InUse returns the IDs of the volumes that are staged or published, sorted.
func (d *Driver) InUse() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []string
	for id, v := range d.volumes {
		d.pruneLocked(v)
		if v.Staged != "" || len(v.Published) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// pruneLocked deletes volumes that others have unmounted, as a driver that reads the mounts does.
func (d *Driver) pruneLocked(v *Volume) {
	for target, r := range v.Published {
		mounted, err := d.Mounter.IsMountPoint(target)
		if err != nil || !mounted && r.GetVolumeCapability().GetBlock() == nil {
			delete(v.Published, target)
		}
	}
}

// Path returns the directory of the files of a volume.
func (d *Driver) Path(id string) string {
	return filepath.Join(d.Dir, strings.ReplaceAll(id, "/", "_"))
}

func (d *Driver) volumeLocked(id string) *Volume {
	if d.volumes == nil {
		d.volumes = map[string]*Volume{}
	}
	v := d.volumes[id]
	if v == nil {
		v = &Volume{Published: map[string]*csipb.NodePublishVolumeRequest{}}
		d.volumes[id] = v
	}
	return v
}

func (d *Driver) can(t csipb.NodeServiceCapability_RPC_Type) bool {
	return !slices.Contains(d.Without, t)
}

// bind mounts a directory unless it is mounted.
func (d *Driver) bind(from, to string, options ...string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	if mounted, err := d.Mounter.IsMountPoint(to); err != nil || mounted {
		return err
	}
	return d.Mounter.Mount(from, to, "", append([]string{"bind"}, options...))
}

// unbind reverts bind and removes the directory.
func (d *Driver) unbind(path string) error {
	mounted, err := d.Mounter.IsMountPoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && mounted {
		err = d.Mounter.Unmount(path)
	}
	if err == nil {
		err = os.Remove(path)
	}
	return err
}

func invalid(format string, args ...any) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf(format, args...))
}
