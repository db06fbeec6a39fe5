package fakecri

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// images are the images on the node and the configuration of all images. Runtime.mu
// guards them.
type images struct {
	behaviors map[string]*fake.Image // by full name, see byFullName
	here      chain[*image]          // by ID, without "sha256:"
	byName    map[string]*image      // tags and digests
	pulls     map[string]*pull       // in progress, by full name
	failed    map[string]int         // number of failed pulls, by full name, of images with PullFails
	past      undo[*runtimeapi.Image]
}

// An image is an image on the node.
type image struct {
	id            string
	tags, digests []string     // full names, in the order in which they were added
	layers        []fake.Layer // each with a name
	behavior      *fake.Image
	item          *runtimeapi.Image // in lists; replaced, not modified
}

// defaultLayer is the size of an image without an fake.Image.
const defaultLayer = 1 << 20

func newImages(behaviors map[string]fake.Image) images {
	configured, _ := byFullName(behaviors) // the error was returned by Config.check
	return images{behaviors: configured, byName: map[string]*image{}, pulls: map[string]*pull{}, failed: map[string]int{}}
}

// of returns the behavior of an image.
func (i *images) of(named reference.Named) *fake.Image {
	if b := lookup(i.behaviors, named); b != nil {
		return b
	}
	return new(fake.Image)
}

// addPresentLocked adds the images with fake.Image.Present.
func (r *Runtime) addPresentLocked() {
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Images)) {
		if named, err := parseImage(name); err == nil && r.cfg.Images[name].Present {
			r.addImageLocked(named)
		}
	}
}

// addImageLocked adds an image, or a name to an existing one.
func (r *Runtime) addImageLocked(named reference.Named) *image {
	manifest := digestOf(named)
	id := imageID(manifest)
	img, err := r.images.here.find(bareID(id))
	if err != nil {
		img = &image{id: id, behavior: r.images.of(named)}
		for i, l := range img.behavior.Layers {
			if l.Name == "" {
				l.Name = id + "/" + strconv.Itoa(i)
			}
			img.layers = append(img.layers, l)
		}
		if len(img.layers) == 0 {
			img.layers = []fake.Layer{{Name: id, Size: defaultLayer}}
		}
		r.images.here.add(bareID(id), img)
	}
	if _, ok := named.(reference.Tagged); ok && !slices.Contains(img.tags, named.String()) {
		img.tags = append(img.tags, named.String())
		r.images.byName[named.String()] = img
	}
	if digest := named.Name() + "@" + manifest; !slices.Contains(img.digests, digest) {
		img.digests = append(img.digests, digest)
		r.images.byName[digest] = img
	}
	r.noteImageLocked(img)
	img.item = &runtimeapi.Image{
		Id: id, RepoTags: slices.Clone(img.tags), RepoDigests: slices.Clone(img.digests), Pinned: img.behavior.Pinned,
	}
	for _, l := range img.layers {
		img.item.Size += l.Size
	}
	if uid, name, isUID := userOf(img.behavior.User); isUID {
		img.item.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		img.item.Username = name
	}
	return img
}

// noteImageLocked records the state of an image before a change.
func (r *Runtime) noteImageLocked(img *image) {
	if r.past.kept {
		r.images.past.note(img.id, img.item)
	}
}

// findImageLocked returns the image with a name, an ID or a prefix of an ID, or nil. An
// ambiguous prefix is an error.
func (r *Runtime) findImageLocked(name string) (*image, error) {
	if !strings.HasPrefix(name, "sha256:") {
		if named, err := parseImage(name); err == nil {
			if img, ok := r.images.byName[named.String()]; ok {
				return img, nil
			}
		}
	}
	img, err := r.images.here.find(bareID(name))
	switch {
	case err == nil:
		return img, nil
	case errors.Is(err, errNoSuchID) || name == "sha256:":
		return nil, nil
	}
	return nil, refused("image %q: %v", name, err)
}

func bareID(id string) string { return strings.TrimPrefix(id, "sha256:") }

// A resolved image is the image that a container was created from.
type resolved struct {
	spec   *runtimeapi.ImageSpec // in statuses: the name
	ref    string                // with its digest
	id     string
	names  []string // of the image
	layers []fake.Layer
}

// resolveLocked finds an image on the node.
func (r *Runtime) resolveLocked(spec *runtimeapi.ImageSpec) (resolved, error) {
	img, err := r.findImageLocked(spec.GetImage())
	if err != nil {
		return resolved{}, err
	}
	if img == nil {
		return resolved{}, status.Errorf(codes.NotFound, "fakecri: image %q not found", spec.GetImage())
	}
	if len(img.tags) > 0 {
		spec = &runtimeapi.ImageSpec{Image: img.tags[0]}
	}
	return resolved{spec: spec, ref: img.digests[0], id: img.id, names: img.tags, layers: img.layers}, nil
}

// ListImages returns the images on the node, in the order in which they were added. The
// filter is ignored, as by containerd 2.4.
func (r *Runtime) ListImages(ctx context.Context, _ *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return callAged(ctx, r, fake.Call{Method: "ListImages"}, func(ctx context.Context, age time.Duration) ([]*runtimeapi.Image, error) {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		var was map[string]*runtimeapi.Image
		if age > 0 {
			was = r.images.past.since(age)
		}
		var list []*runtimeapi.Image
		add := func(item *runtimeapi.Image) {
			if item != nil {
				list = append(list, item)
			}
		}
		for img := range r.images.here.all() {
			item, changed := was[img.id]
			if !changed {
				item = img.item
			}
			delete(was, img.id)
			add(item)
		}
		for _, id := range slices.Sorted(maps.Keys(was)) { // removed ones
			add(was[id])
		}
		return list, nil
	})
}

// ImageStatus returns the image with a name or ID. If there is none, it returns no image
// and no error.
func (r *Runtime) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return callLocked(ctx, r, fake.Call{Method: "ImageStatus", Image: spec.GetImage()}, func() (*runtimeapi.ImageStatusResponse, error) {
		img, err := r.findImageLocked(spec.GetImage())
		if err != nil {
			return nil, err
		}
		if img == nil {
			return &runtimeapi.ImageStatusResponse{}, nil
		}
		resp := &runtimeapi.ImageStatusResponse{Image: img.item}
		if verbose {
			resp.Info = map[string]string{"info": infoOf(map[string]any{"layers": img.layers, "user": img.behavior.User})}
		}
		return resp, nil
	})
}

// RemoveImage removes an image with all its names, also if it is in use: then its layers
// use disk space until the last of its containers is removed. An unknown image is not an
// error.
func (r *Runtime) RemoveImage(ctx context.Context, spec *runtimeapi.ImageSpec) error {
	return actLocked(ctx, r, fake.Call{Method: "RemoveImage", Image: spec.GetImage()}, func() error {
		img, err := r.findImageLocked(spec.GetImage())
		if img == nil {
			return err
		}
		for _, name := range slices.Concat(img.tags, img.digests) {
			delete(r.images.byName, name)
		}
		r.images.here.remove(bareID(img.id))
		r.noteImageLocked(img)
		return nil
	})
}
