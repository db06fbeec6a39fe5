package pleg

import "time"

// Diff is tested directly: it is where events come from.
var Diff = diff

// Records returns how many pods g keeps anything of.
func Records(g *Generator) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pods)
}

// Followers returns how many are told of changes.
func Followers(g *Generator) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.followers)
}

// Owed returns how many pods followers know anything of, or are owed.
func Owed(g *Generator) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.followers {
		n += len(f.delivered)
	}
	return n
}

// HealthyBy is Healthy by a clock that shows now.
func HealthyBy(g *Generator, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return healthy(g.listed, now, g.cfg.Threshold+g.plan.extension, g.listErr)
}

// Trust makes g go by the hints of its runtime as it would after a while.
func Trust(g *Generator) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.confidence.state, g.confidence.period = confidenceTrusted, g.confidence.max
	g.plan.next = time.Now().Add(g.confidence.period)
	signal(g.planSignal)
}
