package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"
)

// Progress is called about once a second with the number of blocks made so far and the total.
type Progress func(done, total int)

// payer is a wallet with one output, which it spends and gets back as change.
type payer struct {
	key     types.PrivateKey
	address types.Address
	coin    types.SiacoinElement // its proof is only kept up to date in form v2
}

// generator makes the blocks of a chain in order.
type generator struct {
	spec    Spec
	random  *rand.Rand
	state   consensus.State
	payers  []payer
	order   []int // indexes of payers; those drawn for a block are moved to its front
	watched []types.Address
}

// newGenerator returns a generator that has applied genesis.
func newGenerator(s Spec) *generator {
	g := &generator{spec: s, payers: make([]payer, s.payers()), order: make([]int, s.payers())}
	for i := range g.payers {
		k := s.key("payer", i)
		g.payers[i] = payer{key: k, address: s.addressOf(k.PublicKey())}
		g.order[i] = i
	}
	for i := range receivers {
		g.watched = append(g.watched, s.address("receiver", i))
	}
	b := fmt.Appendf(nil, "plimsoll draws %s false ", s.Form)
	b = binary.BigEndian.AppendUint64(b, s.Seed)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Transactions))
	g.random = rand.New(rand.NewChaCha8(sha256.Sum256(b)))

	first := s.Genesis()
	bs := consensus.V1BlockSupplement{Transactions: make([]consensus.V1TransactionSupplement, len(first.Transactions))}
	state, update := consensus.ApplyBlock(s.Network().GenesisState(), first, bs, time.Time{})
	owner := map[types.Address]int{}
	for i := range g.payers {
		owner[g.payers[i].address] = i
	}
	for _, d := range update.SiacoinElementDiffs() {
		g.payers[owner[d.SiacoinElement.SiacoinOutput.Address]].coin = d.SiacoinElement.Copy()
	}
	g.state = state
	return g
}

// block returns the next block.
func (g *generator) block() types.Block {
	b := types.Block{
		ParentID:     g.state.Index.ID,
		Timestamp:    g.state.PrevTimestamps[0].Add(interval),
		MinerPayouts: []types.SiacoinOutput{{Address: g.payee(), Value: g.state.BlockReward()}},
	}
	if g.spec.Form == V2 {
		b.V2 = &types.V2BlockData{Height: g.state.Index.Height + 1}
	}
	for i := range g.spec.Transactions {
		// drawn without replacement, so that a payer pays once per block
		j := i + g.random.IntN(len(g.order)-i)
		g.order[i], g.order[j] = g.order[j], g.order[i]
		p := &g.payers[g.order[i]]
		outputs, fee := g.payment(p)
		b.MinerPayouts[0].Value = b.MinerPayouts[0].Value.Add(fee)
		if b.V2 == nil {
			b.Transactions = append(b.Transactions, g.pay1(p, outputs, fee))
		} else {
			b.V2.Transactions = append(b.V2.Transactions, g.pay2(p, outputs, fee))
		}
	}
	if b.V2 != nil {
		b.V2.Commitment = g.state.Commitment(b.MinerPayouts[0].Address, b.Transactions, b.V2.Transactions)
	}
	return b
}

// payment draws the outputs of a payment: one to three amounts, a fee, and the change, which is the
// last output.
func (g *generator) payment(p *payer) (outputs []types.SiacoinOutput, fee types.Currency) {
	left := p.coin.SiacoinOutput.Value
	for range 1 + g.random.IntN(3) {
		amount := types.Siacoins(1).Div64(1000).Mul64(1 + g.random.Uint64N(1_000_000)) // up to 1000 SC
		outputs = append(outputs, types.SiacoinOutput{Address: g.payee(), Value: amount})
		left = left.Sub(amount)
	}
	fee = types.Siacoins(1).Div64(1000).Mul64(1 + g.random.Uint64N(100))
	outputs = append(outputs, types.SiacoinOutput{Address: p.address, Value: left.Sub(fee)})
	return outputs, fee
}

// payee draws the address to pay: a new one or a watched one.
func (g *generator) payee() (a types.Address) {
	if g.random.Float64() < watchedShare {
		return g.watched[g.random.IntN(len(g.watched))]
	}
	for i := 0; i < len(a); i += 8 {
		binary.LittleEndian.PutUint64(a[i:], g.random.Uint64())
	}
	return a
}

func (g *generator) pay1(p *payer, outputs []types.SiacoinOutput, fee types.Currency) types.Transaction {
	t := types.Transaction{
		SiacoinInputs: []types.SiacoinInput{{ParentID: p.coin.ID,
			UnlockConditions: types.StandardUnlockConditions(p.key.PublicKey())}},
		SiacoinOutputs: outputs,
		MinerFees:      []types.Currency{fee},
		Signatures: []types.TransactionSignature{{
			ParentID:      types.Hash256(p.coin.ID),
			CoveredFields: types.CoveredFields{WholeTransaction: true},
		}},
	}
	s := p.key.SignHash(g.state.WholeSigHash(t, types.Hash256(p.coin.ID), 0, 0, nil))
	t.Signatures[0].Signature = s[:]
	return t
}

func (g *generator) pay2(p *payer, outputs []types.SiacoinOutput, fee types.Currency) types.V2Transaction {
	t := types.V2Transaction{
		SiacoinInputs: []types.V2SiacoinInput{{
			Parent:          p.coin.Copy(),
			SatisfiedPolicy: types.SatisfiedPolicy{Policy: types.PolicyPublicKey(p.key.PublicKey())},
		}},
		SiacoinOutputs: outputs,
		MinerFee:       fee,
	}
	t.SiacoinInputs[0].SatisfiedPolicy.Signatures = []types.Signature{p.key.SignHash(g.state.InputSigHash(t))}
	return t
}

// apply makes b the tip, and its change the coins of the payers that paid in it.
func (g *generator) apply(b types.Block, state consensus.State, update consensus.ApplyUpdate) {
	g.state = state
	if g.spec.Transactions == 0 {
		return
	}
	change := make(map[types.SiacoinOutputID]int, g.spec.Transactions)
	for i := range b.Transactions {
		t := &b.Transactions[i]
		change[t.SiacoinOutputID(len(t.SiacoinOutputs)-1)] = g.order[i]
	}
	for i, all := 0, b.V2Transactions(); i < len(all); i++ {
		t := &all[i]
		change[t.SiacoinOutputID(t.ID(), len(t.SiacoinOutputs)-1)] = g.order[i]
	}
	if g.spec.Form == V2 { // in v1, the node's store provides the proofs
		for _, i := range g.order[g.spec.Transactions:] {
			update.UpdateElementProof(&g.payers[i].coin.StateElement)
		}
	}
	for _, d := range update.SiacoinElementDiffs() {
		if i, ok := change[d.SiacoinElement.ID]; ok {
			g.payers[i].coin = d.SiacoinElement.Copy()
		}
	}
}

// generate writes the chain to a store that has its genesis. It does not validate the blocks,
// because each node that replays or follows the chain does. The library panics if it cannot write.
func generate(ctx context.Context, s Spec, store *chain.DBStore, say Progress) (m Manifest, err error) {
	g := newGenerator(s)
	m = Manifest{Spec: s, Transactions: int64(s.Blocks * s.Transactions)}
	pad := store.Scratchpad()
	said := time.Now()
	for n := range s.Blocks {
		if err := ctx.Err(); err != nil {
			return m, fmt.Errorf("sia-chain: generate: after %d of %d blocks: %w", n, s.Blocks, context.Cause(ctx))
		}
		b := g.block()
		var bs consensus.V1BlockSupplement
		if s.Form == V1 {
			bs = pad.SupplementTipBlock(b)
		}
		ancestor, _ := pad.AncestorTimestamp(b.ParentID)
		state, update := consensus.ApplyBlock(g.state, b, bs, ancestor)
		pad.AddState(state)
		pad.AddBlock(b, &bs)
		pad.ApplyBlock(state, update)
		g.apply(b, state, update)

		m.Bytes += encodedBytes(b)
		if time.Since(said) >= time.Second {
			said = time.Now()
			say(n+1, s.Blocks)
		}
	}
	if err := pad.Flush(); err != nil {
		return m, fmt.Errorf("sia-chain: generate: %w", err)
	}
	m.Tip = g.state.Index
	say(s.Blocks, s.Blocks)
	return m, nil
}

// encodedBytes returns the size of a block as the RPC SendV2Blocks sends it, in both forms.
func encodedBytes(b types.Block) int64 {
	var buf bytes.Buffer
	e := types.NewEncoder(&buf)
	types.V2Block(b).EncodeTo(e)
	e.Flush() // a buffer returns no errors
	return int64(buf.Len())
}
