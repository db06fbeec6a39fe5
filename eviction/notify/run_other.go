//go:build !linux

package notify

import "context"

// Run calls low each time that more is used than a level, until ctx ends (nil), or
// the use cannot be read.
func (n *Notifier) Run(ctx context.Context, low func()) error { return n.poll(ctx, low) }
