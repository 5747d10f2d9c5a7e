// The sums of the memory bar, in whole numbers of any length: those of kvlab.arithmetic.sizing
// for models whose layers are all alike. Everything is in bytes, on the fullest rank.
kvlab.memorySums = (model, kvHeads, cacheType, weightsType, context, users, tp, card, overhead) => {
  const big = (value) => BigInt(value);
  const upTo = (amount, parts) => (amount + parts - 1n) / parts;
  const bytes = ([block, blockBytes], elements) => upTo(elements, big(block)) * big(blockBytes);
  const ranks = big(tp),
    heads = big(kvHeads),
    onRank = upTo(heads, ranks),
    dim = big(model.headDim);
  const row = (count) => 2n * bytes(cacheType, count * dim);
  const token = big(model.layers) * row(heads),
    tokenOnRank = big(model.layers) * row(onRank);
  const request = big(context) * token,
    requestOnRank = big(context) * tokenOnRank;
  // Heads are copied where there are fewer of them than ranks; the rest of the weights is split.
  const matrices = upTo(big(model.split), ranks) + big(model.perKvHead) * onRank;
  const wide = weightsType[1] / weightsType[0] >= 2 ? weightsType : [1, 2];
  const weights =
    bytes(weightsType, matrices) + bytes(wide, upTo(big(model.tables), ranks) + big(model.copied));
  const left = big(card) - weights - big(overhead),
    room = left > 0n ? left : 0n;
  return {
    token,
    tokenOnRank,
    request,
    requestOnRank,
    weights,
    left,
    room,
    caches: big(users) * requestOnRank,
    fit: room / requestOnRank,
    pooled: (ranks * room) / request,
    parameters:
      big(model.split) + big(model.perKvHead) * heads + big(model.tables) + big(model.copied),
  };
};
