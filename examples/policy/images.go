package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

const (
	days      = 4
	disk      = 40 << 30 // for images
	services  = 120      // of which each has an image
	slots     = 25       // pods at a time
	collected = 30 * time.Minute
)

// imageMeasures are what a node is judged by; less is better.
var imageMeasures = []string{"pulls", "GiB pulled", "GiB removed", "pulls without room"}

// A service is what pods are of. Some are asked for often, most are not, and now
// and then one has a new version, after which nobody asks for the old one.
type service struct {
	version int
	size    uint64
}

func (s *service) image(i int) runtime.Image {
	return runtime.Image{ID: fmt.Sprintf("service%d-v%d", i, s.version), Size: s.size} // its names play no part
}

// liveImages is some days of a node: every few minutes a pod ends and another one
// starts, for which an image is pulled if it is not there. It returns what
// imageMeasures name.
func liveImages(seed uint64, policy imagegc.Policy, rank func(a, b *imagegc.Record) int) ([]float64, error) {
	rng := rand.New(rand.NewPCG(seed, 2))
	var pulls, pulled, removed, failed float64
	known := make([]*service, services)
	for i := range known {
		known[i] = &service{size: uint64(math.Exp(rng.NormFloat64()*0.9) * 400 * mib)}
	}
	popular := rand.NewZipf(rng, 1.2, 4, services-1)
	var there []runtime.Image
	var records []imagegc.Record
	var used uint64
	running := make([]runtime.Image, slots)

	starts := monday
	for now := monday; now.Before(monday.AddDate(0, 0, days)); now = now.Add(collected) {
		for ; starts.Before(now); starts = starts.Add(time.Duration(rng.ExpFloat64() * 4 * float64(time.Minute))) {
			i := int(popular.Uint64())
			if rng.IntN(40) == 0 {
				known[i].version++
			}
			image, slot := known[i].image(i), rng.IntN(slots)
			running[slot] = runtime.Image{} // a pod has ended
			if !has(there, image) {
				if used+image.Size > disk {
					failed++
					continue
				}
				there, used = append(there, image), used+image.Size
				pulls, pulled = pulls+1, pulled+float64(image.Size)
			}
			running[slot] = image
		}
		var uses []runtime.ImageUse
		for slot, image := range running {
			if image.ID != "" {
				uses = append(uses, runtime.ImageUse{ID: image.ID, Namespace: "default", Pod: fmt.Sprintf("pod%d", slot), Container: "main"})
			}
		}
		records = imagegc.Detect(records, there, uses, now)
		plan, err := imagegc.MakePlan(imagegc.Input{
			Records: records, Space: imagegc.Space{Capacity: disk, Available: disk - used}, Policy: policy, Since: monday, Rank: rank, Now: now,
		})
		if err != nil {
			return nil, err
		}
		there = there[:0:0]
		for _, d := range plan.Decisions {
			if d.Goes {
				used, removed = used-d.Record.Image.Size, removed+float64(d.Record.Image.Size)
			} else {
				there = append(there, d.Record.Image)
			}
		}
	}
	return []float64{pulls, pulled / (1 << 30), removed / (1 << 30), failed}, nil
}

func has(list []runtime.Image, image runtime.Image) bool {
	for i := range list {
		if list[i].ID == image.ID {
			return true
		}
	}
	return false
}
