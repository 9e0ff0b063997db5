package siasim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"time"
)

// hastings are sent as text.
type hastings struct{ *big.Int }

// MarshalJSON implements json.Marshaler.
func (h hastings) MarshalJSON() ([]byte, error) {
	if h.Int == nil {
		return []byte(`"0"`), nil
	}
	return []byte(`"` + h.Int.String() + `"`), nil
}

type versionAnswer struct {
	Version  string `json:"version"`
	Revision string `json:"gitrevision"`
	Built    string `json:"buildtime"`
}

type consensusJSON struct {
	Synced         bool      `json:"synced"`
	Height         int64     `json:"height"`
	Block          string    `json:"currentblock"`
	Target         [32]uint8 `json:"-"` // see MarshalJSON
	Difficulty     string    `json:"difficulty"`
	Primary        string    `json:"foundationprimaryunlockhash"`
	Failsafe       string    `json:"foundationfailsafeunlockhash"`
	BlockFrequency int64     `json:"blockfrequency"`
	SizeLimit      int64     `json:"blocksizelimit"`
	ExtremeFuture  int64     `json:"extremefuturethreshold"`
	Future         int64     `json:"futurethreshold"`
	Genesis        int64     `json:"genesistimestamp"`
	Maturity       int64     `json:"maturitydelay"`
	MedianWindow   int64     `json:"mediantimestampwindow"`
	Siafunds       string    `json:"siafundcount"`
	Portion        string    `json:"siafundportion"`
	Initial        int64     `json:"initialcoinbase"`
	Minimum        int64     `json:"minimumcoinbase"`
	RootTarget     [32]uint8 `json:"-"`
	RootDepth      [32]uint8 `json:"-"`
	Precision      string    `json:"siacoinprecision"`
}

// MarshalJSON implements json.Marshaler: an array of bytes is sent as numbers.
func (c consensusJSON) MarshalJSON() ([]byte, error) {
	type plain consensusJSON
	return json.Marshal(struct {
		plain
		Target     [32]uint8 `json:"target"`
		RootTarget [32]uint8 `json:"roottarget"`
		RootDepth  [32]uint8 `json:"rootdepth"`
	}{plain(c), c.Target, c.RootTarget, c.RootDepth})
}

func (s *Sim) consensusAnswer() consensusJSON {
	height := s.height(s.now)
	c := consensusJSON{
		Synced: true, Height: height, Block: fmt.Sprintf("%064x", height), Difficulty: "8388607",
		Primary: fmt.Sprintf("%076x", 1), Failsafe: fmt.Sprintf("%076x", 2),
		BlockFrequency: int64(s.conf.BlockTime.Seconds()), SizeLimit: 2_000_000, ExtremeFuture: 5 * 3600, Future: 3 * 3600,
		Genesis: 1433600000, Maturity: 144, MedianWindow: 11, Siafunds: "10000", Portion: "39/1000",
		Initial: 300_000, Minimum: 30_000, Precision: "1000000000000000000000000",
	}
	c.Target[2], c.RootTarget[2] = 2, 2
	for i := range c.RootDepth {
		c.RootDepth[i] = math.MaxUint8
	}
	return c
}

type alert struct {
	Cause    string `json:"cause"`
	Msg      string `json:"msg"`
	Module   string `json:"module"`
	Severity string `json:"severity"`
}

// alertsAnswer tells of the first files whose redundancy is low.
func (s *Sim) alertsAnswer() map[string][]alert {
	all := []alert{}
	for _, path := range s.paths() {
		if f := s.files[path]; f.was && f.health() > 0.25 && len(all) < 10 {
			all = append(all, alert{
				Cause: fmt.Sprintf("Siafile 'home/user/%s' has a health of %g and redundancy of %g", path, f.health(), f.redundancy()),
				Msg:   "The SiaFile mentioned in the 'Cause' is below 75% redundancy", Module: "renter", Severity: "warning",
			})
		}
	}
	none := []alert{}
	return map[string][]alert{"alerts": all, "criticalalerts": none, "erroralerts": none, "warningalerts": all, "infoalerts": none}
}

type gatewayAnswer struct {
	Address string       `json:"netaddress"`
	Peers   []peerAnswer `json:"peers"`
	Online  bool         `json:"online"`
	Down    int64        `json:"maxdownloadspeed"`
	Up      int64        `json:"maxuploadspeed"`
}

type peerAnswer struct {
	Inbound bool   `json:"inbound"`
	Local   bool   `json:"local"`
	Address string `json:"netaddress"`
	Version string `json:"version"`
}

type walletJSON struct {
	Encrypted bool     `json:"encrypted"`
	Height    int64    `json:"height"`
	Rescan    bool     `json:"rescanning"`
	Unlocked  bool     `json:"unlocked"`
	Confirmed hastings `json:"confirmedsiacoinbalance"`
	Out       hastings `json:"unconfirmedoutgoingsiacoins"`
	In        hastings `json:"unconfirmedincomingsiacoins"`
	Claim     string   `json:"siacoinclaimbalance"`
	Siafunds  string   `json:"siafundbalance"`
	Dust      string   `json:"dustthreshold"`
}

func (s *Sim) walletAnswer() walletJSON {
	out, in := s.wallet.unconfirmed()
	a := walletJSON{
		Encrypted: true, Height: s.height(s.now), Unlocked: !s.wallet.locked,
		Confirmed: hastings{new(big.Int).Set(s.wallet.confirmed)}, Out: hastings{out}, In: hastings{in},
		Claim: "0", Siafunds: "0", Dust: "30000000000000000000",
	}
	if s.wallet.locked { // as recorded: it has not looked at the chain
		a.Height, a.Confirmed, a.Out, a.In = 0, hastings{}, hastings{}, hastings{}
	}
	return a
}

// allowanceJSON is in /renter's settings and, flat, in /renter/prices.
type allowanceJSON struct {
	Funds              hastings `json:"funds"`
	Hosts              int64    `json:"hosts"`
	Period             int64    `json:"period"`
	RenewWindow        int64    `json:"renewwindow"`
	ExpectedStorage    int64    `json:"expectedstorage"`
	ExpectedUpload     int64    `json:"expectedupload"`
	ExpectedDownload   int64    `json:"expecteddownload"`
	ExpectedRedundancy float64  `json:"expectedredundancy"`
	MaxPeriodChurn     int64    `json:"maxperiodchurn"`
	MaxRPC             string   `json:"maxrpcprice"`
	MaxContract        string   `json:"maxcontractprice"`
	MaxDownload        string   `json:"maxdownloadbandwidthprice"`
	MaxSector          string   `json:"maxsectoraccessprice"`
	MaxStorage         string   `json:"maxstorageprice"`
	MaxUpload          string   `json:"maxuploadbandwidthprice"`
}

func newAllowance(c Config) allowanceJSON {
	a := allowanceJSON{
		ExpectedRedundancy: float64(c.Data+c.Parity) / float64(c.Data),
		MaxRPC:             "0", MaxContract: "0", MaxDownload: "0", MaxSector: "0", MaxStorage: "0", MaxUpload: "0",
	}
	if c.Contracts > 0 {
		each := new(big.Int).Add(c.ContractFunds, c.ContractFees)
		a.Funds = hastings{each.Mul(each, big.NewInt(3*int64(c.Contracts)))}
		a.Hosts, a.Period, a.RenewWindow = int64(c.Contracts), c.Period, c.RenewWindow
		a.ExpectedStorage, a.ExpectedUpload, a.ExpectedDownload, a.MaxPeriodChurn = 1e12, 1e11, 1e11, 1e12
	}
	return a
}

type memory struct {
	Available         int64 `json:"available"`
	Base              int64 `json:"base"`
	Requested         int64 `json:"requested"`
	PriorityAvailable int64 `json:"priorityavailable"`
	PriorityBase      int64 `json:"prioritybase"`
	PriorityRequested int64 `json:"priorityrequested"`
	PriorityReserve   int64 `json:"priorityreserve"`
}

func memoryOf(mib int64) memory {
	return memory{Available: mib << 20, Base: mib << 20, PriorityAvailable: mib << 20, PriorityBase: mib << 20}
}

type renterJSON struct {
	Settings struct {
		Allowance allowanceJSON `json:"allowance"`
		Check     bool          `json:"ipviolationcheck"`
		Up        int64         `json:"maxuploadspeed"`
		Down      int64         `json:"maxdownloadspeed"`
		Uploads   struct {
			Paused bool      `json:"paused"`
			Until  time.Time `json:"pauseendtime"`
		} `json:"uploadsstatus"`
	} `json:"settings"`
	Metrics struct {
		Fees        hastings    `json:"contractfees"`
		Download    hastings    `json:"downloadspending"`
		FundAccount hastings    `json:"fundaccountspending"`
		Maintenance maintenance `json:"maintenancespending"`
		Storage     hastings    `json:"storagespending"`
		Allocated   hastings    `json:"totalallocated"`
		Upload      hastings    `json:"uploadspending"`
		Unspent     hastings    `json:"unspent"`
		Spending    hastings    `json:"contractspending"`
		Withheld    hastings    `json:"withheldfunds"`
		Release     int64       `json:"releaseblock"`
		Previous    hastings    `json:"previousspending"`
	} `json:"financialmetrics"`
	Current uint64 `json:"currentperiod"`
	Next    uint64 `json:"nextperiod"`
	Memory  struct {
		memory
		Registry memory `json:"registry"`
		Upload   memory `json:"userupload"`
		Download memory `json:"userdownload"`
		System   memory `json:"system"`
	} `json:"memorystatus"`
}

type maintenance struct {
	Balance hastings `json:"accountbalancecost"`
	Fund    hastings `json:"fundaccountcost"`
	Prices  hastings `json:"updatepricetablecost"`
}

func (s *Sim) renterAnswer() renterJSON {
	var a renterJSON
	a.Settings.Allowance = s.allowance
	a.Settings.Check = true
	// The period began a renew window before the first contracts: on a young
	// chain this is below zero, and siad's counter has no sign.
	begin := s.conf.Height - s.conf.RenewWindow
	a.Current, a.Next = uint64(begin), uint64(begin+s.conf.Period)
	m := &a.Metrics
	sum := func(of func(c *contract) *big.Int) hastings {
		total := new(big.Int)
		for _, c := range s.contract {
			total.Add(total, of(c))
		}
		return hastings{total}
	}
	m.Fees = sum(func(c *contract) *big.Int { return c.fees })
	m.Download = sum(func(c *contract) *big.Int { return c.download })
	m.Storage = sum(func(c *contract) *big.Int { return c.storage })
	m.Upload = sum(func(c *contract) *big.Int { return c.upload })
	m.Allocated = sum(func(c *contract) *big.Int { return c.total })
	m.Spending = m.Allocated
	unspent := new(big.Int)
	if s.allowance.Funds.Int != nil {
		unspent.Set(s.allowance.Funds.Int)
	}
	for _, spent := range []hastings{m.Fees, m.Download, m.Storage, m.Upload} {
		unspent.Sub(unspent, spent.Int)
	}
	if unspent.Sign() < 0 { // more was put in than allowed: Overfund
		unspent.SetInt64(0)
	}
	m.Unspent = hastings{unspent}
	if within(s.faults.Underflow, s.now) {
		m.Upload = hastings{new(big.Int).Neg(new(big.Int).Add(m.Upload.Int, big.NewInt(1)))}
		a.Current = math.MaxUint64 - 50
	}
	a.Memory.memory = memoryOf(960)
	a.Memory.PriorityAvailable, a.Memory.PriorityBase, a.Memory.PriorityReserve = 1<<30, 1<<30, 64<<20
	a.Memory.Registry, a.Memory.Upload, a.Memory.Download, a.Memory.System = memoryOf(256), memoryOf(256), memoryOf(256), memoryOf(192)
	return a
}

type publicKey struct {
	Algorithm string `json:"algorithm"`
	Key       string `json:"key"`
}

type contractJSON struct {
	Download     hastings            `json:"downloadspending"`
	End          int64               `json:"endheight"`
	Fees         hastings            `json:"fees"`
	FundAccount  hastings            `json:"fundaccountspending"`
	Host         publicKey           `json:"hostpublickey"`
	HostVersion  string              `json:"hostversion"`
	ID           string              `json:"id"`
	Transaction  map[string][]string `json:"lasttransaction"`
	Maintenance  maintenance         `json:"maintenancespending"`
	Address      string              `json:"netaddress"`
	Funds        hastings            `json:"renterfunds"`
	Size         uint64              `json:"size"`
	Start        int64               `json:"startheight"`
	Storage      hastings            `json:"storagespending"`
	StorageAgain hastings            `json:"StorageSpending"` // siad sends it twice
	Total        hastings            `json:"totalcost"`
	Upload       hastings            `json:"uploadspending"`
	GoodUpload   bool                `json:"goodforupload"`
	GoodRenew    bool                `json:"goodforrenew"`
	Bad          bool                `json:"badcontract"`
}

// emptyTransaction has the lists of a transaction, with nothing in them.
var emptyTransaction = map[string][]string{
	"siacoininputs": {}, "siacoinoutputs": {}, "filecontracts": {}, "filecontractrevisions": {}, "storageproofs": {},
	"siafundinputs": {}, "siafundoutputs": {}, "minerfees": {}, "arbitrarydata": {}, "transactionsignatures": {},
}

func (s *Sim) contractJSON(c *contract) contractJSON {
	copied := func(a *big.Int) hastings { return hastings{new(big.Int).Set(a)} }
	good := c.state == active
	return contractJSON{
		Download: copied(c.download), End: c.end, Fees: copied(c.fees), Host: publicKey{"ed25519", c.host.base64()}, HostVersion: "1.5.9",
		ID: c.id, Transaction: emptyTransaction, Address: c.host.address, Funds: copied(c.funds), Size: uint64(c.size), Start: c.start,
		Storage: copied(c.storage), StorageAgain: copied(c.storage), Total: copied(c.total), Upload: copied(c.upload),
		GoodUpload: good && !within(s.faults.Full, s.now), GoodRenew: good,
	}
}

// contractsAnswer lists what siad does: the ended ones only when asked for, and
// the renewed ones among them.
func (s *Sim) contractsAnswer(q url.Values) map[string][]contractJSON {
	a := map[string][]contractJSON{
		"contracts": nil, "inactivecontracts": nil, "activecontracts": nil, "passivecontracts": nil, "refreshedcontracts": nil,
		"disabledcontracts": nil, "expiredcontracts": nil, "expiredrefreshedcontracts": nil, "recoverablecontracts": nil,
	}
	for _, c := range s.contract {
		one := s.contractJSON(c)
		switch c.state {
		case active, passive:
			a["contracts"] = append(a["contracts"], one)
			list := map[state]string{active: "activecontracts", passive: "passivecontracts"}[c.state]
			a[list] = append(a[list], one)
		case refreshed:
			a["refreshedcontracts"] = append(a["refreshedcontracts"], one)
		case expired:
			if c.renewedTo != "" {
				one.Size = 0 // its data are the new one's
			}
			if q.Get("expired") == "true" {
				a["expiredcontracts"] = append(a["expiredcontracts"], one)
			}
		}
	}
	if all := a["activecontracts"]; len(all) > 0 && within(s.faults.Underflow, s.now) {
		bad := all[0]
		bad.Size = math.MaxUint64 - bad.Size
		bad.Funds = hastings{new(big.Int).Neg(new(big.Int).Add(bad.Funds.Int, big.NewInt(1)))}
		a["activecontracts"][0], a["contracts"][0] = bad, bad
	}
	return a
}

type pricesJSON struct {
	Download  hastings `json:"downloadterabyte"`
	Contracts hastings `json:"formcontracts"`
	Storage   hastings `json:"storageterabytemonth"`
	Upload    hastings `json:"uploadterabyte"`
	allowanceJSON
}

// pricesAnswer has siad's estimates: hosts' prices, times the usual redundancy
// of 3 where they are for data that is stored, and a margin of a fifth.
func (s *Sim) pricesAnswer() pricesJSON {
	estimate := func(price *big.Int, times, fifths int64) hastings {
		p := new(big.Int).Mul(price, big.NewInt(times))
		p.Mul(p, big.NewInt(fifths))
		return hastings{p.Div(p, big.NewInt(5))}
	}
	p := s.conf.Prices
	hosts := max(s.allowance.Hosts, 1)
	return pricesJSON{
		Download: estimate(p.Download, 1e12, 6), Upload: estimate(p.Upload, 1e12, 18), Storage: estimate(p.Storage, 1e12*4320, 18),
		Contracts: hastings{new(big.Int).Mul(s.conf.ContractFees, big.NewInt(hosts))}, allowanceJSON: s.allowance,
	}
}

type readyAnswer struct {
	Ready  bool  `json:"ready"`
	Needed int64 `json:"contractsneeded"`
	Active int64 `json:"numactivecontracts"`
	Data   int64 `json:"datapieces"`
	Parity int64 `json:"paritypieces"`
}

type fileJSON struct {
	Accessed      time.Time `json:"accesstime"`
	Available     bool      `json:"available"`
	Changed       time.Time `json:"changetime"`
	Cipher        string    `json:"ciphertype"`
	Created       time.Time `json:"createtime"`
	Expiration    int64     `json:"expiration"`
	Size          uint64    `json:"filesize"`
	Health        float64   `json:"health"`
	Local         string    `json:"localpath"`
	MaxHealth     float64   `json:"maxhealth"`
	HealthPercent float64   `json:"maxhealthpercent"`
	Modified      time.Time `json:"modtime"`
	Mode          int       `json:"mode"`
	StuckChunks   int       `json:"numstuckchunks"`
	OnDisk        bool      `json:"ondisk"`
	Recoverable   bool      `json:"recoverable"`
	Redundancy    float64   `json:"redundancy"`
	Renewing      bool      `json:"renewing"`
	Repair        int64     `json:"repairbytes"`
	Skylinks      []string  `json:"skylinks"`
	Path          string    `json:"siapath"`
	Stuck         bool      `json:"stuck"`
	StuckBytes    int64     `json:"stuckbytes"`
	StuckHealth   float64   `json:"stuckhealth"`
	UID           uint64    `json:"uid"`
	Uploaded      uint64    `json:"uploadedbytes"`
	Progress      float64   `json:"uploadprogress"`
}

func (s *Sim) fileJSON(f *file) fileJSON {
	at := s.epoch.Add(f.changed).UTC()
	a := fileJSON{
		Accessed: at, Changed: at, Modified: at, Created: s.epoch.Add(f.made).UTC(), Cipher: "threefish512", Size: uint64(f.size),
		Health: f.health(), MaxHealth: f.health(), Redundancy: f.redundancy(), Available: f.redundancy() >= 1,
		HealthPercent: min(max(100*(1.25-f.health()), 0), 100), Local: f.local, OnDisk: f.local != "", Recoverable: true, Renewing: true,
		Repair: int64(f.missing()) * s.conf.Sector, Path: f.path, UID: uint64(f.serial), Uploaded: uint64(f.placed) * uint64(s.conf.Sector),
	}
	if want := f.chunks * f.full; want > 0 {
		a.Progress = min(100, 100*float64(f.placed)/float64(want))
	} else if !f.incomplete {
		a.Progress = 100
	}
	if f.incomplete {
		a.Available, a.Redundancy, a.Progress = false, 0, 0
	}
	if f.placed > 0 {
		a.Expiration = s.conf.Height + s.conf.Period
	}
	return a
}

type hostJSON struct {
	Accepting     bool       `json:"acceptingcontracts"`
	DownBatch     int64      `json:"maxdownloadbatchsize"`
	MaxDuration   int64      `json:"maxduration"`
	ReviseBatch   int64      `json:"maxrevisebatchsize"`
	Address       string     `json:"netaddress"`
	Remaining     int64      `json:"remainingstorage"`
	Sector        int64      `json:"sectorsize"`
	Total         int64      `json:"totalstorage"`
	UnlockHash    string     `json:"unlockhash"`
	Window        int64      `json:"windowsize"`
	Collateral    string     `json:"collateral"`
	MaxCollateral string     `json:"maxcollateral"`
	BaseRPC       string     `json:"baserpcprice"`
	Contract      hastings   `json:"contractprice"`
	Download      hastings   `json:"downloadbandwidthprice"`
	SectorAccess  string     `json:"sectoraccessprice"`
	Storage       hastings   `json:"storageprice"`
	Upload        hastings   `json:"uploadbandwidthprice"`
	Expiry        int64      `json:"ephemeralaccountexpiry"`
	MaxBalance    string     `json:"maxephemeralaccountbalance"`
	Revision      int64      `json:"revisionnumber"`
	Version       string     `json:"version"`
	SiamuxPort    string     `json:"siamuxport"`
	FirstSeen     int64      `json:"firstseen"`
	HistDown      int64      `json:"historicdowntime"`
	HistUp        int64      `json:"historicuptime"`
	Scans         []hostScan `json:"scanhistory"`
	HistFailed    float64    `json:"historicfailedinteractions"`
	HistOK        float64    `json:"historicsuccessfulinteractions"`
	Failed        float64    `json:"recentfailedinteractions"`
	OK            float64    `json:"recentsuccessfulinteractions"`
	LastUpdate    int64      `json:"lasthistoricupdate"`
	IPNets        []string   `json:"ipnets"`
	LastIPNet     time.Time  `json:"lastipnetchange"`
	Public        publicKey  `json:"publickey"`
	Filtered      bool       `json:"filtered"`
	PublicText    string     `json:"publickeystring"`
}

type hostScan struct {
	At      time.Time `json:"timestamp"`
	Success bool      `json:"success"`
}

func (s *Sim) hostsAnswer(known func(h *host) bool) map[string][]hostJSON {
	a := map[string][]hostJSON{"hosts": nil}
	p := s.conf.Prices
	for i, h := range s.hosts {
		if !known(h) {
			continue
		}
		remaining := max(s.conf.HostStorage-h.used, 0)
		if within(s.faults.Full, s.now) {
			remaining = 0
		}
		a["hosts"] = append(a["hosts"], hostJSON{
			Accepting: true, DownBatch: 17 << 20, MaxDuration: 25_920, ReviseBatch: 17 << 20, Address: h.address, Remaining: remaining,
			Sector: s.conf.Sector, Total: s.conf.HostStorage, UnlockHash: fmt.Sprintf("%076x", i+1), Window: 144,
			Collateral: "23148148148", MaxCollateral: "5000000000000000000000000000", BaseRPC: "100000000000000000",
			Contract: hastings{p.Contract}, Download: hastings{p.Download}, SectorAccess: "2000000000000000000", Storage: hastings{p.Storage}, Upload: hastings{p.Upload},
			Expiry: 604_800_000_000_000, MaxBalance: "1000000000000000000000000", Revision: 5, Version: "1.5.9", SiamuxPort: "9983",
			FirstSeen: s.conf.Height - 1000, OK: 1, Scans: []hostScan{{s.epoch.Add(-10 * time.Minute).UTC(), true}, {s.epoch.UTC(), true}},
			IPNets: []string{h.address[:len(h.address)-len(":9982")] + "/24"}, LastIPNet: s.epoch.UTC(),
			Public: publicKey{"ed25519", h.base64()}, PublicText: h.public(),
		})
	}
	return a
}
