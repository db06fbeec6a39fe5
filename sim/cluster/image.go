package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

const (
	imageGCPeriod = 5 * time.Minute // the kubelet's ImageGCPeriod

	// The delays after failed pulls, as in runtime/cri/images.
	firstPullDelay = 10 * time.Second
	maxPullDelay   = 5 * time.Minute
)

// An image is an image that pods of a node use or have used.
type image struct {
	name     string
	size     int64
	present  bool
	users    int // pods
	detected time.Duration
	lastUsed time.Duration // when the last user terminated; never: none has
	waiting  []*pod        // for its pull
}

func compareImage(i *image, name string) int { return strings.Compare(i.name, name) }

// useImage starts the pod when its image is present, and pulls it if necessary.
func (n *node) useImage(p *pod) {
	i, ok := slices.BinarySearchFunc(n.images, p.spec.Image, compareImage)
	if !ok {
		img := &image{name: p.spec.Image, size: n.cluster.cfg.Images[p.spec.Image], lastUsed: never}
		n.images = slices.Insert(n.images, i, img)
	}
	img := n.images[i]
	img.users++
	n.awaitImage(img, p)
}

// awaitImage starts the pod when the image is present.
func (n *node) awaitImage(img *image, p *pod) {
	if img.present {
		p.sync()
		return
	}
	img.waiting = append(img.waiting, p)
	if !slices.Contains(n.pulls, img) {
		n.pulls = append(n.pulls, img)
		if len(n.pulls) == 1 {
			n.pull(img)
		}
	}
}

func (n *node) releaseImage(name string) {
	i, _ := slices.BinarySearchFunc(n.images, name, compareImage)
	img := n.images[i]
	img.users--
	img.lastUsed = n.cluster.now
	if img.users == 0 && !img.present && !slices.Contains(n.pulls, img) {
		n.images = slices.Delete(n.images, i, i+1)
	}
}

// pull pulls an image, then the next one.
func (n *node) pull(img *image) {
	takes := scale(img.size, time.Second, time.Duration(n.cluster.cfg.Kubelet.PullBandwidth))
	n.cluster.after(time.Duration(takes), func() {
		n.pulls = n.pulls[1:]
		n.pulled(img)
		if len(n.pulls) > 0 {
			n.pull(n.pulls[0])
		}
	})
}

// pulled adds a pulled image and starts the pods that wait for it. If the disk is full, the
// pull has failed, and the pods wait for their back-off.
func (n *node) pulled(img *image) {
	c, waiting := n.cluster, img.waiting
	img.waiting = nil
	full := n.info.Used.Disk+img.size > n.capacity.Disk
	if full {
		c.emit(ImagePullFailed, "", n.name, img.name)
	} else {
		img.present, img.detected = true, c.now
		n.imageBytes += img.size
		n.info.Used.Disk += img.size
		n.result.Pulls++
		n.result.PulledBytes += img.size
		c.counts.pulls++
		c.emit(ImagePulled, "", n.name, img.name)
	}
	for _, p := range waiting {
		if !full {
			p.sync()
			continue
		}
		delay := min(firstPullDelay<<min(p.pullFailures, 10), maxPullDelay)
		p.pullFailures++
		c.after(delay, func() { n.awaitImage(img, p) })
	}
}

// collectPeriodically runs image garbage collection.
func (n *node) collectPeriodically() {
	n.cluster.after(imageGCPeriod, n.collectPeriodically)
	if len(n.images) > 0 {
		n.collectImages(false)
	}
}

// collectImages removes the images that the plan of package imagegc selects; with all, all
// unused ones. It returns how many.
func (n *node) collectImages(all bool) (removed int) {
	c := n.cluster
	in := imagegc.Inputs{
		Policy: c.cfg.Kubelet.ImageGC, Since: epoch, Now: c.time(), All: all,
		Space: imagegc.Space{Capacity: uint64(n.capacity.Disk), Available: uint64(max(n.capacity.Disk-n.info.Used.Disk, 0))},
	}
	for _, img := range n.images {
		if img.present {
			in.Records = append(in.Records, img.record(c.now))
		}
	}
	plan, err := in.Plan()
	if err != nil {
		panic(err) // New has checked the policy, which is its only cause
	}
	for i := range plan.Decisions {
		if d := &plan.Decisions[i]; d.Remove {
			n.removeImage(d.Record.Image.ID)
			removed++
		}
	}
	return removed
}

// record returns the image as package imagegc represents it.
func (i *image) record(now time.Duration) imagegc.Record {
	r := imagegc.Record{
		Image:         runtime.Image{ID: i.name, Tags: []string{i.name}, Size: uint64(i.size)},
		FirstDetected: epoch.Add(i.detected),
	}
	switch {
	case i.users > 0:
		r.LastUsed, r.Users = epoch.Add(now), []string{"a pod"}
	case i.lastUsed != never:
		r.LastUsed = epoch.Add(i.lastUsed)
	}
	return r
}

// removeImage removes an unused image.
func (n *node) removeImage(name string) {
	i, _ := slices.BinarySearchFunc(n.images, name, compareImage)
	img := n.images[i]
	n.images = slices.Delete(n.images, i, i+1)
	n.imageBytes -= img.size
	n.info.Used.Disk -= img.size
	n.result.ImagesRemoved++
	n.cluster.counts.imagesRemoved++
	n.cluster.emit(ImageRemoved, "", n.name, name)
}
