package statuspage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/imagegc"
)

// imagesFresh is how long the result of a dry run, which queries the runtime, is reused.
const imagesFresh = 10 * time.Second

// imagePlan returns the images of the node, and those that garbage collection would
// remove now.
func (h *Handler) imagePlan(ctx context.Context, now time.Time) page.Images {
	if h.cfg.Images == nil {
		return page.Images{None: "The agent does not manage images."}
	}
	if !h.imagesAt.IsZero() && now.Sub(h.imagesAt) < imagesFresh {
		return h.images
	}
	plan, err := h.cfg.Images.DryRun(ctx)
	if err != nil {
		return page.Images{None: "The images of the node could not be listed: " + err.Error()}
	}
	h.images, h.imagesAt = imagesOf(plan, h.cfg.Images.Policy()), now
	return h.images
}

// imagesOf describes a plan. The percentages of policy must not be nil.
func imagesOf(plan imagegc.Plan, policy imagegc.Policy) page.Images {
	var out page.Images
	removed := 0
	for _, d := range plan.Decisions {
		i := page.Image{Name: d.Record.Image.ID, Bytes: d.Record.Image.Size, Goes: d.Remove, Class: string(d.Class), Why: d.Reason}
		if names := slices.Concat(d.Record.Image.Tags, d.Record.Image.Digests); len(names) > 0 {
			i.Name = names[0]
		}
		if d.Remove {
			removed++
		}
		out.Bytes += i.Bytes
		out.List = append(out.List, i)
	}
	high, low := *policy.HighPercent, *policy.LowPercent
	out.Disk = fmt.Sprintf("The disk of the images is %d %% full; from %d %% on, images are removed until it is %d %% full.", plan.UsagePercent, high, low)
	if high >= 100 {
		out.Disk = fmt.Sprintf("The disk of the images is %d %% full; images are not removed to free space.", plan.UsagePercent)
	}
	switch removed {
	case 0:
		out.Goes = "None would be removed now."
	case 1:
		out.Goes = "One would be removed now."
	default:
		out.Goes = fmt.Sprintf("%d would be removed now.", removed)
	}
	return out
}
