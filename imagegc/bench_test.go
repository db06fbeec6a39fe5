package imagegc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

// A node with 2,000 images, of which 110 pods use a tenth.
func many() (records []imagegc.Record, uses []runtime.ImageUse) {
	for i := range 2000 {
		records = append(records, record(fmt.Sprintf("team%d/app%d:%d", i%7, i%100, i), float64(i%50), float64(i%30), uint64(i)*1000))
	}
	for i := range 220 {
		uses = append(uses, runtime.ImageUse{ID: records[i*9].Image.ID, Pod: fmt.Sprint(i / 2), Container: "c"})
	}
	return records, uses
}

func BenchmarkPlan(b *testing.B) {
	records, _ := many()
	in := imagegc.Inputs{Records: records, Space: imagegc.Space{Capacity: 1 << 40, Available: 1 << 30}, Now: t0}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Plan(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlanWithPatterns(b *testing.B) {
	records, _ := many()
	in := imagegc.Inputs{
		Records: records, Space: imagegc.Space{Capacity: 1 << 40, Available: 1 << 30}, Now: t0,
		Policy: imagegc.Policy{Keep: []string{"*/base/*", "*:stable", "registry.k8s.io/*"}, Deny: []string{"*miner*"}, KeepTags: 3},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Plan(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	records, uses := many()
	var images []runtime.Image
	for i := range records {
		images = append(images, records[i].Image)
	}
	b.ReportAllocs()
	for b.Loop() {
		imagegc.Detect(records, images, uses, t0)
	}
}

// A hold and its release, as each sync of a pod has one.
func BenchmarkHold(b *testing.B) {
	m, err := imagegc.New(newWorld(1).config())
	if err != nil {
		b.Fatal(err)
	}
	pod := podWith("web", "registry.example/team/app:1", "busybox")
	b.ReportAllocs()
	for b.Loop() {
		release, err := m.AcquireImages(context.Background(), pod)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
