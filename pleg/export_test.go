package pleg

// Diff is tested directly: it is where events come from.
var Diff = diff

// Records returns how many pods g keeps anything of.
func Records(g *Generator) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pods)
}
