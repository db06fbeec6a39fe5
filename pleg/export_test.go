package pleg

import "time"

// Diff is tested directly: it is where events come from.
var Diff = diff

// Records returns the number of pods that g has a record of.
func Records(g *Generator) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pods)
}

// Followers returns the number of followers.
func Followers(g *Generator) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.followers)
}

// Owed returns the number of pods that followers have a record of, or are owed.
func Owed(g *Generator) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.followers {
		n += len(f.delivered)
	}
	return n
}

// HealthyBy is Healthy with the current time now.
func HealthyBy(g *Generator, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return healthy(g.listed, now, g.cfg.Threshold+g.plan.extension, g.listErr)
}

// Trust makes g trust the hints of its runtime as it would after a while.
func Trust(g *Generator) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.confidence.state, g.confidence.covered = ConfidenceTrusted, true
	g.plan.next = time.Now().Add(g.confidence.period())
	signal(g.planSignal)
}
